#include "trawl/prefilter_file.hpp"

#include <cstring>

#include "base/mapped_file.hpp"
#include "dense/codes/codes_format.hpp"
#include "dense/codes/row_codes.hpp"
#include "dense/prefilter/prefilter_format.hpp"
#include "trawl/error.hpp"

namespace trawl {

std::shared_ptr<const PrefilterFile> PrefilterFile::open(const std::string& path) {
  const auto file = MappedFile::open(path, 0, -1);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  const auto header = read_header<PrefilterHeader>(path, *file, "a prefilter file");
  check_prefilter_header(path, header, file->bytes());

  std::shared_ptr<PrefilterFile> prefilter(new PrefilterFile);
  prefilter->basis_f32_.resize(size_t{header.dimension} * header.components);
  std::memcpy(prefilter->basis_f32_.data(), file->data() + sizeof header, 4 * prefilter->basis_f32_.size());
  if (prefilter_header_checksum(header, prefilter->basis_f32_) != header.checksum) refuse("the checksum of the header does not match");
  if (first_not_finite(prefilter->basis_f32_.data(), static_cast<int64_t>(prefilter->basis_f32_.size())) >= 0) {
    refuse("a component contains NaN or infinity");
  }
  const int64_t body = file->bytes() - static_cast<int64_t>(header.header_bytes);
  const CodesFooter footer = read_codes_footer(path, file->data() + header.header_bytes, body, header.rows_per_block,
                                               static_cast<int64_t>(header.block_bytes), false);
  prefilter->file_ = file;
  prefilter->metric_ = static_cast<Metric>(header.metric);
  prefilter->dimension_ = header.dimension;
  prefilter->components_ = header.components;
  prefilter->rows_ = footer.rows;
  prefilter->rows_per_block_ = header.rows_per_block;
  prefilter->blocks_ = footer.blocks;
  prefilter->header_bytes_ = header.header_bytes;
  prefilter->block_bytes_ = header.block_bytes;
  prefilter->sign_seed_ = header.sign_seed;
  prefilter->codes_identity_ = header.codes_identity;
  prefilter->orthogonality_error_ = header.orthogonality_error;
  file->advise(MappedFile::Pattern::kHugePages);
  file->advise(MappedFile::Pattern::kWillNeed);
  return prefilter;
}

void PrefilterFile::require_unchanged() const { file_->require_unchanged(); }

int64_t PrefilterFile::bytes() const { return file_->bytes(); }

PrefilterBlock PrefilterFile::block(int64_t index) const {
  const PrefilterBlockLayout layout(rows_per_block_, components_);
  const uint8_t* base = file_->data() + header_bytes_ + index * block_bytes_;
  PrefilterBlock block;
  block.first_row = index * rows_per_block_;
  block.rows = rows_ - block.first_row < rows_per_block_ ? rows_ - block.first_row : rows_per_block_;
  block.codes_i8 = reinterpret_cast<const int8_t*>(base);
  block.scale_f32 = reinterpret_cast<const float*>(base + layout.scale);
  block.residual_f32 = reinterpret_cast<const float*>(base + layout.residual);
  block.size_f32 = reinterpret_cast<const float*>(base + layout.size);
  block.code_sum_i32 = reinterpret_cast<const int32_t*>(base + layout.code_sum);
  block.bias_f32 = reinterpret_cast<const float*>(base + layout.bias);
  block.tail = reinterpret_cast<const CodesBlockTail*>(base + layout.tail);
  return block;
}

bool PrefilterFile::block_checksum_holds(int64_t index) const {
  const PrefilterBlock here = block(index);
  const PrefilterBlockLayout layout(rows_per_block_, components_);
  return here.tail->rows == static_cast<uint64_t>(here.rows) &&
         here.tail->checksum == prefilter_block_checksum(reinterpret_cast<const uint8_t*>(here.codes_i8), layout, here.tail->rows);
}

}  // namespace trawl
