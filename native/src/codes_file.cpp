#include "trawl/codes_file.hpp"

#include <cstring>

#include "codes_format.hpp"
#include "mapped_file.hpp"
#include "row_codes.hpp"
#include "trawl/error.hpp"

namespace trawl {

std::shared_ptr<const CodesFile> CodesFile::open(const std::string& path, CodesPlacement placement) {
  const auto file = placement == CodesPlacement::kMapped ? MappedFile::open(path, 0, -1) : MappedFile::load(path);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  CodesHeader header;
  if (file->bytes() < static_cast<int64_t>(sizeof header)) {
    refuse("is " + std::to_string(file->bytes()) + " bytes long, too short for a codes file");
  }
  std::memcpy(&header, file->data(), sizeof header);
  check_codes_header(path, header, file->bytes());

  std::shared_ptr<CodesFile> codes(new CodesFile);
  codes->mean_f32_.resize(header.dimension);
  std::memcpy(codes->mean_f32_.data(), file->data() + sizeof header, 4 * size_t{header.dimension});
  if (codes_header_checksum(header, codes->mean_f32_) != header.checksum) refuse("header checksum does not hold");
  if (first_not_finite(codes->mean_f32_.data(), header.dimension) >= 0) refuse("mean is not finite");

  const int64_t body = file->bytes() - static_cast<int64_t>(header.header_bytes);
  const int64_t footer_bytes = sizeof(CodesFooter);
  CodesFooter footer = {};
  if (body >= footer_bytes) std::memcpy(&footer, file->data() + file->bytes() - footer_bytes, footer_bytes);
  if (body < footer_bytes || std::memcmp(footer.magic, kCodesFooterMagic, sizeof footer.magic) != 0) {
    refuse("has no footer: it is unfinished or truncated; resume the build or make the codes again");
  }
  if (footer.checksum != make_codes_footer(footer.rows, footer.blocks).checksum) {
    refuse("footer checksum does not hold");
  }
  const int64_t block_bytes = header.block_bytes, blocks = (body - footer_bytes) / block_bytes;
  if ((body - footer_bytes) % block_bytes != 0 || footer.blocks != static_cast<uint64_t>(blocks)) {
    refuse("holds " + std::to_string(body - footer_bytes) + " bytes of blocks, but its footer counts " +
           std::to_string(footer.blocks) + " blocks of " + std::to_string(block_bytes));
  }
  const uint64_t per_block = header.rows_per_block;
  if (footer.rows / per_block > static_cast<uint64_t>(blocks) ||
      footer.rows / per_block + (footer.rows % per_block != 0) != static_cast<uint64_t>(blocks)) {
    refuse("counts " + std::to_string(footer.rows) + " rows, which do not fill " + std::to_string(blocks) +
           " blocks of " + std::to_string(per_block));
  }

  codes->file_ = file;
  codes->metric_ = static_cast<Metric>(header.metric);
  codes->dimension_ = header.dimension;
  codes->padded_ = header.padded_dimension;
  codes->rows_ = footer.rows;
  codes->rows_per_block_ = header.rows_per_block;
  codes->blocks_ = blocks;
  codes->header_bytes_ = header.header_bytes;
  codes->block_bytes_ = block_bytes;
  codes->sign_seed_ = header.sign_seed;
  if (placement == CodesPlacement::kMapped) {
    // Huge pages where the file system offers them spare the translation cache; the scan will want every byte.
    file->advise(MappedFile::Pattern::kHugePages);
    file->advise(MappedFile::Pattern::kWillNeed);
  }
  return codes;
}

int64_t CodesFile::bytes() const { return file_->bytes(); }

CodesBlock CodesFile::block(int64_t index) const {
  const CodesBlockLayout layout(rows_per_block_, padded_);
  const uint8_t* base = file_->data() + header_bytes_ + index * block_bytes_;
  CodesBlock block;
  block.first_row = index * rows_per_block_;
  block.rows = rows_ - block.first_row < rows_per_block_ ? rows_ - block.first_row : rows_per_block_;
  block.codes_i8 = reinterpret_cast<const int8_t*>(base);
  block.scale_f32 = reinterpret_cast<const float*>(base + layout.scale);
  block.residual_f32 = reinterpret_cast<const float*>(base + layout.residual);
  block.norm_f32 = reinterpret_cast<const float*>(base + layout.norm);
  block.code_sum_i32 = reinterpret_cast<const int32_t*>(base + layout.code_sum);
  block.bias_f64 = reinterpret_cast<const double*>(base + layout.bias);
  block.tail = reinterpret_cast<const CodesBlockTail*>(base + layout.tail);
  return block;
}

bool CodesFile::block_checksum_holds(int64_t index) const {
  const CodesBlock here = block(index);
  const CodesBlockLayout layout(rows_per_block_, padded_);
  return here.tail->rows == static_cast<uint64_t>(here.rows) &&
         here.tail->checksum ==
             codes_block_checksum(reinterpret_cast<const uint8_t*>(here.codes_i8), layout, here.tail->rows);
}

}  // namespace trawl
