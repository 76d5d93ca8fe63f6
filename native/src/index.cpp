#include "trawl/index.hpp"

#include <string>

#include "trawl/error.hpp"

namespace trawl {

Index::Index(Metric metric, int64_t dimension) : metric_(metric), dimension_(dimension) {
  if (dimension < 1 || dimension > kMaxDimension) {
    throw Error(ErrorCode::kBadArgument,
                "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxDimension) + "]");
  }
}

void Index::add_shard(std::shared_ptr<const Rows> rows, std::shared_ptr<const CodesFile> codes,
                      std::shared_ptr<const ScreenFile> screen) {
  const std::string name = "shard " + std::to_string(shards_.size()) + ": ";
  if (!rows) throw Error(ErrorCode::kBadArgument, name + "has no rows");
  if (rows->dimension() != dimension_) {
    throw Error(ErrorCode::kBadFile, name + "rows have dimension " + std::to_string(rows->dimension()) +
                                         ", the index has " + std::to_string(dimension_));
  }
  if (codes) {
    if (codes->rows() != rows->rows() || codes->dimension() != dimension_) {
      throw Error(ErrorCode::kBadFile, name + "codes are " + std::to_string(codes->rows()) + " x " +
                                           std::to_string(codes->dimension()) + ", rows are " +
                                           std::to_string(rows->rows()) + " x " + std::to_string(dimension_) +
                                           "; make the codes again from these vectors");
    }
    if (codes->metric() != metric_) {
      throw Error(ErrorCode::kBadFile, name + "codes were made for " + metric_name(codes->metric()) +
                                           ", the index ranks by " + metric_name(metric_));
    }
  }
  if (screen) {
    if (!codes) throw Error(ErrorCode::kBadFile, name + "has a screen but no codes");
    if (screen->codes_identity() != codes->identity() || screen->rows() != codes->rows() ||
        screen->dimension() != codes->dimension() || screen->rows_per_block() != codes->rows_per_block()) {
      throw Error(ErrorCode::kBadFile, name + "the screen was made for other codes; make it again from these");
    }
  }
  const int64_t count = rows->rows();
  shards_.push_back({std::move(rows), std::move(codes), std::move(screen), rows_});
  rows_ += count;
}

int64_t Index::resident_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.screen ? shard.screen->bytes() : shard.codes ? shard.codes->bytes() : 0;
  return bytes;
}

int64_t Index::touched_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.screen ? shard.codes->bytes() : 0;
  return bytes;
}

int64_t Index::mapped_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.rows->bytes();
  return bytes;
}

}  // namespace trawl
