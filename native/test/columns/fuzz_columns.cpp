// Fuzz target for the reader of column files, and for filters over the files that it accepts. The first bytes select the case;
// the others are the file, or the bytes to overwrite in a valid one.
#include "column_files.hpp"

namespace {

using namespace column_files;

// Bytes that select the case, before the bytes of the file.
constexpr size_t kCaseBytes = 8;

Bytes file_of(ColumnType type, const uint8_t* data, size_t size, std::mt19937& random) {
  const bool is_whole = data[6] % 4 == 0;
  if (is_whole) return Bytes(data + kCaseBytes, data + size);
  const Cells cells = random_cells(type, data[5], random() % 2 == 0, random);
  Bytes bytes = column_bytes(type, cells, type == ColumnType::kString ? 1 << random() % 3 : 1);
  // Each four bytes: a place, from the beginning or the end, and the value of its byte.
  for (size_t i = kCaseBytes; i + 4 <= size; i += 4) {
    size_t at = data[i] | data[i + 1] << 8;
    if ((data[i + 2] & 1) != 0) at = bytes.size() - 1 - at % bytes.size();
    if (at < bytes.size()) bytes[at] = data[i + 3];
  }
  if (data[6] % 4 == 3) bytes.resize(bytes.size() * data[7] / 255);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static oracle::TempDir directory;
  static trawl::ThreadPool pool(1);
  if (size < kCaseBytes) return 0;
  std::mt19937 random(data[0] | data[1] << 8 | data[2] << 16 | data[3] << 24);
  const ColumnType type = kTypes[data[4] % kTypes.size()];
  try {
    const auto file = opened(directory, type, file_of(type, data, size, random));
    const int64_t rows = file->rows();
    for (int i = 0; i < 8; ++i) {
      const std::vector<uint64_t> found = rows_of({{file}}, random_test(2, {type}, random), rows, pool);
      if (static_cast<int64_t>(found.size()) != (rows + 63) / 64) __builtin_trap();
      if (rows % 64 != 0 && found.back() >> (rows % 64) != 0) __builtin_trap();
    }
  } catch (const trawl::Error&) {
  }
  return 0;
}
