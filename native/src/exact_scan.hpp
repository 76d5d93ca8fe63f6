// Scores every exact row of some shards: the fallback where codes are absent or of no use, and the plain truth.
#pragma once
#include <functional>
#include <vector>

#include "score.hpp"
#include "top_k.hpp"
#include "trawl/index.hpp"
#include "trawl/search.hpp"

namespace trawl {

// top[i] gets the k best of queries[i] among the rows of `shards` that pass the filter, in addition to what it holds.
// Throws kNotFinite where a row that was never checked holds NaN or infinity.
void exact_scan(const Index& index, const std::vector<const Shard*>& shards, const std::vector<ScoreQuery>& queries,
                const std::vector<TopK*>& top, const SearchOptions& options, const Kernels& kernels, ThreadPool& pool);

// 1 to kScoreLanes rows of a shard as float32 bytes: where they lie, or widened or gathered into scratch. Lanes past the
// count repeat the first row.
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
