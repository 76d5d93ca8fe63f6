#include "dense/codes/codes_format.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

constexpr int64_t kHeaderAlignment = 4096;  // the first block starts on a page

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t checksum_of_all(CodesFooter footer) {
  footer.checksum = 0;
  return checksum64(&footer, sizeof footer);
}

}  // namespace

int64_t padded_dimension(int64_t dimension) { return round_up(dimension, 64); }

int64_t default_rows_per_block(int64_t dimension) {
  const int64_t fit = (int64_t{1} << 20) / padded_dimension(dimension) / 16 * 16;
  return fit < 16 ? 16 : fit > 1024 ? 1024 : fit;
}

CodesBlockLayout::CodesBlockLayout(int64_t rows, int64_t padded) {
  int64_t at = rows * padded;
  const auto place = [&](int64_t element_bytes) {
    const int64_t here = at;
    at = round_up(at + rows * element_bytes, 64);
    return here;
  };
  scale = place(4);
  residual = place(4);
  norm = place(4);
  code_sum = place(4);
  bias = place(8);
  tail = at;
  bytes = at + static_cast<int64_t>(sizeof(CodesBlockTail));
}

uint64_t codes_header_bytes(int64_t dimension) {
  return round_up(static_cast<int64_t>(sizeof(CodesHeader)) + 4 * dimension, kHeaderAlignment);
}

uint64_t codes_header_checksum(CodesHeader header, const std::vector<float>& mean) {
  header.checksum = 0;
  return checksum64(mean.data(), mean.size() * 4, checksum64(&header, sizeof header));
}

CodesHeader make_codes_header(Metric metric, int64_t rows_per_block, const std::vector<float>& mean) {
  const auto dimension = static_cast<int64_t>(mean.size());
  CodesHeader header = {};
  std::memcpy(header.magic, kCodesMagic, sizeof header.magic);
  header.version = kCodesVersion;
  header.metric = static_cast<uint32_t>(metric);
  header.dimension = static_cast<uint32_t>(dimension);
  header.padded_dimension = static_cast<uint32_t>(padded_dimension(dimension));
  header.rows_per_block = static_cast<uint32_t>(rows_per_block);
  header.rotation = kRotationHadamardSigns;
  header.sign_seed = kSignSeed;
  header.header_bytes = codes_header_bytes(dimension);
  header.block_bytes = CodesBlockLayout(rows_per_block, header.padded_dimension).bytes;
  header.checksum = codes_header_checksum(header, mean);
  return header;
}

CodesFooter make_codes_footer(int64_t rows, int64_t blocks) {
  CodesFooter footer = {};
  std::memcpy(footer.magic, kCodesFooterMagic, sizeof footer.magic);
  footer.rows = rows;
  footer.blocks = blocks;
  footer.checksum = checksum64(&footer, offsetof(CodesFooter, checksum));
  return footer;
}

CodesFooter make_codes_footer(int64_t rows, int64_t blocks, uint64_t identity, uint64_t rows_checksum) {
  CodesFooter footer = make_codes_footer(rows, blocks);
  footer.identity = identity;
  footer.rows_checksum = rows_checksum;
  footer.checksum = checksum_of_all(footer);
  return footer;
}

void CodesIdentity::add_block(const CodesBlockTail& tail) { sum_ = checksum64(&tail, sizeof tail, sum_); }

uint64_t CodesIdentity::finish(int64_t rows) const { return checksum64(&rows, sizeof rows, sum_); }

uint64_t RowsChecksum::of_block(const float* rows, int64_t count, int64_t dimension) { return checksum64(rows, 4 * count * dimension); }

void RowsChecksum::add_block(uint64_t block_checksum) { sum_ = checksum64(&block_checksum, sizeof block_checksum, sum_); }

CodesFooter read_codes_footer(const std::string& path, const uint8_t* body, int64_t body_bytes, uint64_t rows_per_block,
                              int64_t block_bytes, bool has_identity) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  const int64_t footer_bytes = sizeof(CodesFooter);
  CodesFooter footer = {};
  if (body_bytes >= footer_bytes) std::memcpy(&footer, body + body_bytes - footer_bytes, footer_bytes);
  if (body_bytes < footer_bytes || std::memcmp(footer.magic, kCodesFooterMagic, sizeof footer.magic) != 0) {
    refuse("the file has no footer, so it is unfinished or truncated; build it again from the vectors");
  }
  if (footer.checksum != (has_identity ? checksum_of_all(footer) : make_codes_footer(footer.rows, footer.blocks).checksum)) {
    refuse("the checksum of the footer does not match");
  }
  const int64_t blocks = (body_bytes - footer_bytes) / block_bytes;
  if ((body_bytes - footer_bytes) % block_bytes != 0 || footer.blocks != static_cast<uint64_t>(blocks)) {
    refuse("the file has " + std::to_string(body_bytes - footer_bytes) + " bytes of blocks, but its footer counts " +
           std::to_string(footer.blocks) + " blocks of " + std::to_string(block_bytes));
  }
  if (footer.rows / rows_per_block > static_cast<uint64_t>(blocks) ||
      footer.rows / rows_per_block + (footer.rows % rows_per_block != 0) != static_cast<uint64_t>(blocks)) {
    refuse("the footer counts " + std::to_string(footer.rows) + " rows, which do not fill " + std::to_string(blocks) + " blocks of " +
           std::to_string(rows_per_block));
  }
  return footer;
}

uint64_t codes_block_checksum(const uint8_t* block, const CodesBlockLayout& layout, uint64_t rows) {
  return checksum64(block, layout.tail, rows);
}

void check_codes_header(const std::string& path, const CodesHeader& header, int64_t file_bytes) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  if (std::memcmp(header.magic, kCodesMagic, sizeof header.magic) != 0) refuse("the file is not a codes file (wrong magic)");
  if (header.version < kFirstCodesVersion || header.version > kCodesVersion) {
    refuse("the codes file has version " + std::to_string(header.version) + ", but this program reads versions " +
           std::to_string(kFirstCodesVersion) + " to " + std::to_string(kCodesVersion) + "; build the codes again from the vectors");
  }
  if (header.metric > static_cast<uint32_t>(Metric::kCosine)) {
    refuse("unknown metric " + std::to_string(header.metric));
  }
  if (header.dimension < 1 || header.dimension > kMaxDimension) {
    refuse("dimension " + std::to_string(header.dimension) + " is not in [1, " + std::to_string(kMaxDimension) + "]");
  }
  if (header.padded_dimension != padded_dimension(header.dimension)) refuse("the padded dimension is wrong");
  if (header.rows_per_block < 16 || header.rows_per_block % 16 != 0 || header.rows_per_block > 65536) {
    refuse("rows per block " + std::to_string(header.rows_per_block) + " is not a multiple of 16 in [16, 65536]");
  }
  if (header.rotation != kRotationHadamardSigns) refuse("unknown rotation " + std::to_string(header.rotation));
  if (header.header_bytes != codes_header_bytes(header.dimension)) refuse("the header size is wrong");
  const CodesBlockLayout layout(header.rows_per_block, header.padded_dimension);
  if (header.block_bytes != static_cast<uint64_t>(layout.bytes)) refuse("the block size is wrong");
  if (static_cast<int64_t>(header.header_bytes) > file_bytes) refuse("the file is truncated inside its header");
}

}  // namespace trawl
