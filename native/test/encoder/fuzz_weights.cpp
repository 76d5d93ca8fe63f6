// Fuzz target for the reader of encoder files, and for passes of the encoders that it accepts. The first bytes select the case; the
// others are the file, or what to overwrite in a valid one.
#include "bert_files.hpp"
#include "oracle.hpp"
#include "trawl/error.hpp"

namespace {

using namespace trawl::encoder;
using Bytes = std::vector<uint8_t>;

constexpr size_t kCaseBytes = 4, kFirstField = 12, kFields = sizeof(BertShape) / 4;

Bytes valid_file(oracle::TempDir& directory, WeightType type) {
  const std::string path = directory.file();
  bert_files::write_random(path, {1, 16, 1, 16, 5, 6, 2, 0, -1, 1e-12f}, 5, type);
  return oracle::read_file(path);
}

// Each four bytes of data: a field of the header and its value, or a place and the value of its byte.
Bytes changed(Bytes file, WeightType type, const uint8_t* data, size_t size) {
  const int32_t odd[] = {-1, 0, 1, 16, 32, 48, 64, 4096, bert_files::kWide, bert_files::kMany, INT32_MAX, INT32_MIN};
  for (size_t i = kCaseBytes; i + 4 <= size; i += 4) {
    if (data[i] % 2 == 0) {
      const int32_t value = data[i + 2] % 2 == 0 ? data[i + 3] % 40 : odd[data[i + 3] % (sizeof odd / sizeof *odd)];
      std::memcpy(&file[kFirstField + 4 * (data[i + 1] % kFields)], &value, 4);
    } else {
      file[(data[i] << 16 | data[i + 1] << 8 | data[i + 2]) % file.size()] = data[i + 3];
    }
  }
  // Most have the size that the header implies, so that the encoder runs.
  BertShape shape;
  std::memcpy(&shape, &file[kFirstField], sizeof shape);
  const double bytes = bert_files::file_bytes(shape, type);
  if (data[1] % 4 != 0 && bytes >= 0 && bytes < 1e6) file.resize(static_cast<size_t>(bytes), data[2]);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static oracle::TempDir directory;
  static const Bytes valid[] = {valid_file(directory, WeightType::kBfloat16), valid_file(directory, WeightType::kInt8)};
  static const std::string path = directory.file();
  if (size < kCaseBytes) return 0;
  const bool is_int8 = data[0] % 2 != 0;
  const WeightType type = is_int8 ? WeightType::kInt8 : WeightType::kBfloat16;
  const bool is_whole = data[0] % 16 == 15;
  const Bytes file = is_whole ? Bytes(data + kCaseBytes, data + size) : changed(valid[is_int8], type, data, size);
  // The encoder may still map the file of the last case.
  std::remove(path.c_str());
  oracle::write_file(path, file.data(), file.size());
  try {
    BertEncoder encoder(path);
    std::mt19937 random(data[3]);
    bert_files::run_all_lengths(encoder, random);
    const int32_t ids[2] = {data[1], data[2] - 100}, types[2] = {data[3] % 3, data[2] % 5 - 1};
    std::vector<float> hidden(2 * static_cast<size_t>(encoder.shape().hidden));
    encoder.run(ids, types, 1, 2, hidden.data(), 1 + data[3] % 3);
  } catch (const trawl::Error&) {
  }
  return 0;
}
