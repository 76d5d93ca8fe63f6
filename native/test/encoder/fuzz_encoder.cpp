// libFuzzer target for the reader of encoder files, and for the forward pass of the files that it accepts. The first bytes select the
// case; the others are the file, or the bytes to overwrite in a valid one.
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "bert_files.hpp"
#include "trawl/bert_encoder.hpp"
#include "trawl/error.hpp"

using namespace trawl::encoder;

namespace {

// Bytes of a case before those of the file.
constexpr size_t kCaseBytes = 8;

const std::string& path() {
  static const std::string path = "/dev/shm/trawl-fuzz-encoder-" + std::to_string(::getpid());
  return path;
}

std::string valid_file(WeightType type, int32_t position_padding) {
  bert_files::write_random(path(), {1, 16, 1, 16, 5, 6, 2, 0, position_padding, 1e-12f}, 5, type);
  std::ifstream file(path(), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string file_of(const uint8_t* data, size_t size) {
  if (data[0] % 4 == 0) return std::string(data + kCaseBytes, data + size);
  std::string bytes = valid_file(data[0] % 2 == 0 ? WeightType::kInt8 : WeightType::kBfloat16, data[1] % 2 == 0 ? -1 : 1);
  // Each four bytes: a place, mostly in the header, and the value of its byte.
  for (size_t i = kCaseBytes; i + 4 <= size; i += 4) {
    size_t at = data[i] | data[i + 1] << 8;
    if ((data[i + 2] & 3) != 0) at %= 64;
    if (at < bytes.size()) bytes[at] = static_cast<char>(data[i + 3]);
  }
  if (data[2] % 4 == 3) bytes.resize(bytes.size() * data[3] / 255);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kCaseBytes) return 0;
  const std::string bytes = file_of(data, size);
  ::unlink(path().c_str());
  std::ofstream(path(), std::ios::binary) << bytes;
  try {
    BertEncoder encoder(path(), "portable");
    const int64_t texts = 1 + data[4] % 3, length = 1 + data[5] % 8, tokens = texts * length;
    std::vector<int32_t> ids(tokens), types(tokens);
    for (int64_t i = 0; i < tokens; ++i) ids[i] = (data[6] + i) % 7 - 1, types[i] = (data[7] + i) % 3;
    if (encoder.shape().hidden > 1 << 12) return 0;
    std::vector<float> hidden(tokens * encoder.shape().hidden);
    encoder.run(ids.data(), data[7] % 2 == 0 ? nullptr : types.data(), texts, length, hidden.data(), 1 + data[3] % 2);
  } catch (const trawl::Error&) {
  }
  return 0;
}
