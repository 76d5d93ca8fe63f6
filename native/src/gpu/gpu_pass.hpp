// The pass of some queries over the codes of one shard on a GPU: its launches (gpu_pass.cpp), the sample that raises the thresholds
// first (gpu_sample.cpp), and the bounds of the pairs that the launches keep (gpu_hits.cpp).
#pragma once
#include <vector>

#include "dense/codes/query_pack.hpp"
#include "dense/search/block_scan.hpp"
#include "dense/search/search_context.hpp"
#include "gpu/gpu_state.hpp"

namespace trawl {

// At most max_queries queries of a search, over one shard. Every query is testable.
class GpuPass {
 public:
  // numbers: which queries of `packed`; filtered: gpu.passing has the rows that pass.
  GpuPass(const SearchContext& context, GpuCodes::State& gpu, const GpuShard& on_gpu, const Shard& shard, const PackedQueries& packed,
          const int64_t* numbers, int64_t count, const States& states, bool filtered);
  void run();

 private:
  QueryState& state(int64_t i) const { return *states_[numbers_[i]]; }
  const QueryBound& bound(int64_t i) const { return packed_.row_order.bounds[numbers_[i]]; }

  void to_host(void* to, cuda::Address from, int64_t bytes, const cuda::StreamHandle& stream) const;
  void upload_queries();
  void upload_numbers(GpuLaunch& launch);
  cuda::ScanArguments arguments(const GpuLaunch& launch) const;
  void start_hits(const cuda::ScanArguments& scan);
  void start_many(const cuda::ScanArguments& scan, const char* narrow, const char* wide);

  int64_t groups_wanted() const;
  // False if earlier shards have raised all thresholds far enough, or k is so large that the sample cannot raise them.
  bool worth_sampling() const;
  // Raises the thresholds by rows of evenly spread tiles: of each group of rows, the row with the largest v.
  void sample();
  void offer_sampled(int64_t i, uint64_t* maxima, int64_t groups);

  // Few enough that the thresholds rise between launches. As long as a query has no threshold, it keeps every row, so the rows are
  // also few enough that it hardly fills the buffer.
  int64_t rows_at_once() const;
  void launch(GpuLaunch& launch, uint32_t begin, uint32_t end);
  // Waits for the launch and bounds its hits.
  void finish(GpuLaunch& launched);
  // After a launch with a full buffer, whose hits were not used. A part of one row fits, because the capacity is at least the number of
  // queries.
  void repeat_in_parts(GpuLaunch& launched);
  void bound_hits(const cuda::DeviceHit* hits, int64_t count);

  const SearchContext& context_;
  GpuCodes::State& gpu_;
  const GpuShard& on_gpu_;
  const Shard& shard_;
  const CodesFile& codes_;
  const PackedQueries& packed_;
  const int64_t* numbers_;  // of the queries in `packed`
  int64_t count_;
  const States& states_;
  bool filtered_;
  int64_t passing_;                             // rows of the shard
  std::vector<std::vector<uint32_t>> sampled_;  // rows that the sample has offered to each query, sorted
};

}  // namespace trawl
