// Header, footer and checksums of a codes file. The reader and the writer use them.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/error.hpp"

namespace trawl {

// Copies the header at the beginning of a file. `what` names such a file in the message. Throws kBadFile for a shorter file.
template <class Header>
Header read_header(const std::string& path, const MappedFile& file, const std::string& what) {
  Header header;
  if (file.bytes() < static_cast<int64_t>(sizeof header)) {
    throw Error(ErrorCode::kBadFile, path + ": the file has " + std::to_string(file.bytes()) + " bytes, too short for " + what);
  }
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

uint64_t codes_header_bytes(int64_t dimension);
uint64_t codes_header_checksum(CodesHeader header, const std::vector<float>& mean_f32);
CodesHeader make_codes_header(Metric metric, int64_t rows_per_block, const std::vector<float>& mean_f32);
// The footer of a prefilter.
CodesFooter make_codes_footer(int64_t rows, int64_t blocks);
// The footer of codes.
CodesFooter make_codes_footer(int64_t rows, int64_t blocks, uint64_t identity, uint64_t rows_checksum);
// Reads the footer at the end of a file's body (all bytes after its header) and checks it against the body's size.
// `has_identity`: whether its checksum covers all fields, as in codes since version 2. Throws kBadFile.
CodesFooter read_codes_footer(const std::string& path, const uint8_t* body, int64_t body_bytes, uint64_t rows_per_block,
                              int64_t block_bytes, bool has_identity);

// CodesFooter::identity, computed block by block, in order.
class CodesIdentity {
 public:
  explicit CodesIdentity(uint64_t header_checksum) : sum_(header_checksum) {}
  void add_block(const CodesBlockTail& tail);
  uint64_t finish(int64_t rows) const;

 private:
  uint64_t sum_;
};

// CodesFooter::rows_checksum, computed block by block, in order.
class RowsChecksum {
 public:
  static uint64_t of_block(const float* rows_f32, int64_t count, int64_t dimension);
  void add_block(uint64_t block_checksum);
  uint64_t value() const { return sum_; }

 private:
  uint64_t sum_ = 0;
};

uint64_t codes_block_checksum(const uint8_t* block, const CodesBlockLayout& layout, uint64_t rows);

// Throws kBadFile, naming the file, unless all fields are valid and safe to use as sizes. header_bytes must not exceed
// file_bytes.
void check_codes_header(const std::string& path, const CodesHeader& header, int64_t file_bytes);

}  // namespace trawl
