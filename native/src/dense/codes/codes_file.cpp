#include "trawl/codes_file.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "base/mapped_file.hpp"
#include "dense/codes/codes_format.hpp"
#include "dense/codes/row_codes.hpp"
#include "trawl/error.hpp"

namespace trawl {

std::shared_ptr<const CodesFile> CodesFile::open(const std::string& path, CodesAccess access) {
  const auto file = MappedFile::open(path, 0, -1);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  const auto header = read_header<CodesHeader>(path, *file, "a codes file");
  check_codes_header(path, header, file->bytes());

  std::shared_ptr<CodesFile> codes(new CodesFile);
  codes->mean_f32_.resize(header.dimension);
  std::memcpy(codes->mean_f32_.data(), file->data() + sizeof header, 4 * size_t{header.dimension});
  if (codes_header_checksum(header, codes->mean_f32_) != header.checksum) refuse("the checksum of the header does not match");
  if (first_not_finite(codes->mean_f32_.data(), header.dimension) >= 0) refuse("the mean is not finite");

  const int64_t body = file->bytes() - static_cast<int64_t>(header.header_bytes);
  const CodesFooter footer = read_codes_footer(path, file->data() + header.header_bytes, body, header.rows_per_block,
                                               static_cast<int64_t>(header.block_bytes), header.version >= 2);

  codes->file_ = file;
  codes->metric_ = static_cast<Metric>(header.metric);
  codes->dimension_ = header.dimension;
  codes->padded_ = header.padded_dimension;
  codes->rows_ = footer.rows;
  codes->rows_per_block_ = header.rows_per_block;
  codes->blocks_ = footer.blocks;
  codes->header_bytes_ = header.header_bytes;
  codes->block_bytes_ = header.block_bytes;
  codes->sign_seed_ = header.sign_seed;
  codes->version_ = header.version;
  codes->header_checksum_ = header.checksum;
  codes->rows_checksum_ = footer.rows_checksum;
  codes->identity_ = codes->has_full_identity() ? footer.identity : codes->sampled_identity();
  if (access == CodesAccess::kSparse) {
    file->advise(MappedFile::Pattern::kRandom);
  } else {
    // Huge pages cause fewer TLB misses, if the file system supports them.
    file->advise(MappedFile::Pattern::kHugePages);
    file->advise(MappedFile::Pattern::kWillNeed);
  }
  return codes;
}

uint64_t CodesFile::identity_of_blocks() const {
  CodesIdentity identity(header_checksum_);
  for (int64_t i = 0; i < blocks_; ++i) identity.add_block(*block(i).tail);
  return identity.finish(rows_);
}

// The header is not enough: other rows with the same mean have the same one. All tails would need a page from each block.
uint64_t CodesFile::sampled_identity() const {
  constexpr int64_t kMaxTails = 64;
  const int64_t tails = blocks_ < kMaxTails ? blocks_ : kMaxTails;
  uint64_t identity = checksum64(&rows_, sizeof rows_, header_checksum_);
  for (int64_t i = 0; i < tails; ++i) {
    const CodesBlockTail* tail = block(tails == 1 ? 0 : i * (blocks_ - 1) / (tails - 1)).tail;
    identity = checksum64(tail, sizeof *tail, identity);
  }
  return identity;
}

const std::string& CodesFile::path() const { return file_->file().path(); }

void CodesFile::require_unchanged() const { file_->require_unchanged(); }

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
         here.tail->checksum == codes_block_checksum(reinterpret_cast<const uint8_t*>(here.codes_i8), layout, here.tail->rows);
}

}  // namespace trawl
