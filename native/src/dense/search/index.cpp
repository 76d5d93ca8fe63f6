#include "trawl/index.hpp"

#include <string>
#include <utility>

#include "trawl/error.hpp"

namespace trawl {

Index::Index(Metric metric, int64_t dimension) : metric_(metric), dimension_(dimension) {
  if (dimension < 1 || dimension > kMaxDimension) {
    throw Error(ErrorCode::kBadArgument,
                "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxDimension) + "]");
  }
}

void Index::add_shard(std::shared_ptr<const Rows> rows, std::shared_ptr<const CodesFile> codes,
                      std::shared_ptr<const PrefilterFile> prefilter) {
  const std::string name = "shard " + std::to_string(shards_.size()) + ": ";
  if (!rows) throw Error(ErrorCode::kBadArgument, name + "has no rows");
  if (rows->dimension() != dimension_) {
    throw Error(ErrorCode::kBadFile, name + "rows have dimension " + std::to_string(rows->dimension()) +
                                         ", but the index has " + std::to_string(dimension_));
  }
  if (codes) {
    if (codes->rows() != rows->rows() || codes->dimension() != dimension_) {
      throw Error(ErrorCode::kBadFile, name + "codes are " + std::to_string(codes->rows()) + " x " +
                                           std::to_string(codes->dimension()) + ", but rows are " +
                                           std::to_string(rows->rows()) + " x " + std::to_string(dimension_) +
                                           "; build the codes again from these vectors");
    }
    if (codes->metric() != metric_) {
      throw Error(ErrorCode::kBadFile, name + "codes were made for " + metric_name(codes->metric()) +
                                           ", but the index ranks by " + metric_name(metric_));
    }
  }
  if (prefilter) {
    if (!codes) throw Error(ErrorCode::kBadFile, name + "has a prefilter but no codes");
    if (prefilter->codes_identity() != codes->identity() || prefilter->rows() != codes->rows() ||
        prefilter->dimension() != codes->dimension() || prefilter->rows_per_block() != codes->rows_per_block()) {
      throw Error(ErrorCode::kBadFile, name + "the prefilter was built for other codes; build it again for these");
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

}  // namespace trawl
