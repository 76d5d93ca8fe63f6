#include "trawl/index.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/float_environment.hpp"
#include "dense/codes/row_codes.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

// Compares some rows with their codes. One in each page of the vectors would be as slow as a scan.
void check_sample(const std::string& name, const CodesFile& codes, const Rows& rows) {
  constexpr int64_t kSampled = 64;
  const FloatEnvironment environment;
  const RowCoder coder(codes.metric(), codes.mean(), codes.sign_seed());
  RowCoder::Scratch scratch(codes.padded());
  std::vector<float> values(codes.dimension());
  const int64_t sampled = std::min(kSampled, codes.rows());
  for (int64_t i = 0; i < sampled; ++i) {
    const int64_t row = sampled == 1 ? 0 : i * (codes.rows() - 1) / (sampled - 1);
    const CodesBlock block = codes.block(row / codes.rows_per_block());
    const int64_t at = row - block.first_row;
    const RowStats stored = {block.scale_f32[at], block.residual_f32[at], block.norm_f32[at], block.code_sum_i32[at], block.bias_f64[at]};
    rows.copy_row(row, values.data());
    const std::string reason = coder.check(values.data(), block.codes_i8 + at * codes.padded(), stored, scratch);
    if (reason.empty()) continue;
    throw Error(ErrorCode::kBadFile, name + "the codes were made for other vectors, or are damaged: row " + std::to_string(row) + ": " +
                                         reason + "; restore the shard's files or build the index again");
  }
}

}  // namespace

Index::Index(Metric metric, int64_t dimension) : metric_(metric), dimension_(dimension) { check_dimension(dimension); }

void Index::add_shard(std::shared_ptr<const Rows> rows, std::shared_ptr<const CodesFile> codes,
                      std::shared_ptr<const PrefilterFile> prefilter) {
  const std::string name = "shard " + std::to_string(shards_.size()) + ": ";
  if (!rows) throw Error(ErrorCode::kBadArgument, name + "has no rows");
  if (rows->dimension() != dimension_) {
    throw Error(ErrorCode::kBadFile,
                name + "rows have dimension " + std::to_string(rows->dimension()) + ", but the index has " + std::to_string(dimension_));
  }
  if (codes) {
    if (codes->rows() != rows->rows() || codes->dimension() != dimension_) {
      throw Error(ErrorCode::kBadFile, name + "codes are " + std::to_string(codes->rows()) + " x " + std::to_string(codes->dimension()) +
                                           ", but rows are " + std::to_string(rows->rows()) + " x " + std::to_string(dimension_) +
                                           "; build the codes again from these vectors");
    }
    if (codes->metric() != metric_) {
      throw Error(ErrorCode::kBadFile,
                  name + "codes were made for " + metric_name(codes->metric()) + ", but the index ranks by " + metric_name(metric_));
    }
  }
  if (codes) check_sample(name, *codes, *rows);
  if (prefilter) {
    if (!codes) throw Error(ErrorCode::kBadFile, name + "has a prefilter but no codes");
    if (prefilter->codes_identity() != codes->identity() || prefilter->rows() != codes->rows() ||
        prefilter->dimension() != codes->dimension() || prefilter->rows_per_block() != codes->rows_per_block()) {
      throw Error(ErrorCode::kBadFile, name + "the prefilter was made for other codes; `trawl optimize` makes it again for these");
    }
  }
  const int64_t count = rows->rows();
  shards_.push_back({std::move(rows), std::move(codes), std::move(prefilter), rows_});
  rows_ += count;
}

void Index::set_live_rows(std::vector<uint64_t> bits) {
  const int64_t words = (rows_ + 63) / 64;
  if (static_cast<int64_t>(bits.size()) != words) {
    throw Error(ErrorCode::kBadArgument, "the bitmap of live rows has " + std::to_string(bits.size()) + " words, but " +
                                             std::to_string(rows_) + " rows need " + std::to_string(words));
  }
  live_bits_ = std::move(bits);
  has_deleted_rows_ = words > 0;
}

void Index::require_unchanged() const {
  for (const Shard& shard : shards_) {
    shard.rows->require_unchanged();
    if (shard.codes) shard.codes->require_unchanged();
    if (shard.prefilter) shard.prefilter->require_unchanged();
  }
}

int64_t Index::resident_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.prefilter ? shard.prefilter->bytes() : shard.codes ? shard.codes->bytes() : 0;
  return bytes;
}

int64_t Index::touched_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.prefilter ? shard.codes->bytes() : 0;
  return bytes;
}

int64_t Index::mapped_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.rows->bytes();
  return bytes;
}

int64_t Index::sampled_prefilters() const {
  return std::count_if(shards_.begin(), shards_.end(),
                       [](const Shard& shard) { return shard.prefilter && !shard.codes->has_full_identity(); });
}

}  // namespace trawl
