// Scores all exact rows of some shards: for shards without codes, and for queries for which the codes exclude too few rows.
#pragma once
#include <vector>

#include "dense/kernels/score.hpp"
#include "dense/search/search_context.hpp"
#include "dense/search/top_k.hpp"

namespace trawl {

// Pushes every row of `shards` that passes the filter to top[i], with its score for queries[i].
// Throws kNotFinite if a row contains NaN or infinity (rows without codes were not checked before).
void exact_scan(const SearchContext& context, const std::vector<const Shard*>& shards, const std::vector<ScoreQuery>& queries,
                const std::vector<TopK*>& top);

// 1 to kScoreLanes rows of a shard as float32 bytes, in the mapping or copied to scratch memory. Unused lanes repeat the first
// row.
class RowLanes {
 public:
  explicit RowLanes(int64_t dimension) : dimension_(dimension), scratch_(kScoreLanes * dimension) {}
  void load(const Rows& rows, const int64_t* local_rows, int count);
  const uint8_t* const* pointers() const { return pointers_; }

 private:
  int64_t dimension_;
  std::vector<float> scratch_;
  const uint8_t* pointers_[kScoreLanes] = {};
};

[[noreturn]] void throw_row_not_finite(const Rows& rows, int64_t local, int64_t global);

}  // namespace trawl
