// The loop over a block of rows, for the pass over codes and the pass over a prefilter.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "dense/codes/query_pack.hpp"
#include "dense/search/query_state.hpp"
#include "dense/search/scan_codes.hpp"
#include "dense/search/search_context.hpp"

namespace trawl {

inline constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();

// If a larger share of a block's rows passes the filter, the scan takes the rows as they lie; else it gathers the rows that pass. The
// answer is the same. With few queries memory limits the speed, and reading scattered rows is slower (bench/search.md).
inline constexpr double kGatheredShare = 0.75, kGatheredShareOfFewQueries = 0.35;
// Rows whose codes are prefetched before they are gathered: enough to hide the latency of memory.
inline constexpr int64_t kGatherAhead = 6;
// A thread reads the thresholds again after this many scans of a few rows, or at once if a scan keeps a larger share of the pairs than
// kManyKept. With many queries reading them takes a noticeable part of the time. An old threshold keeps more pairs, never fewer.
inline constexpr int kRefreshEvery = 4;
inline constexpr double kManyKept = 1.0 / 64;

// Rows of a block that do not lie together, copied side by side.
struct GatheredRows {
  AlignedBuffer<int8_t> codes_i8;  // empty until rows are gathered
  float scale_f32[kMaxScanRows] = {};
  float residual_f32[kMaxScanRows] = {};
  float norm_f32[kMaxScanRows] = {};  // or the sizes of a prefilter's rows
  float bias_f32[kMaxScanRows] = {};
  double bias_f64[kMaxScanRows] = {};
  int32_t code_sum_i32[kMaxScanRows] = {};
};

// Rows of a block by their numbers in it: the `count` chosen ones, and behind them in memory the next ones, `listed` in all.
struct ChosenRows {
  const int32_t* rows;
  int64_t count, listed;
};

// A pair to defer, as long as it is in a thread's buffer and not in its query's state.
struct DeferredPair {
  Deferred row;
  int64_t query;
};

// The thresholds that one thread last read, and its buffers. A later block reuses them.
struct Workspace {
  explicit Workspace(const PackedQueries& packed)
      : tau_seen(packed.count, -kInfinity),
        theta(packed.groups * kGroupQueries),
        lane_order_theta(packed.lane_order ? packed.groups * kGroupQueries : 0),
        likely(packed.count, -kInfinityF32),
        until_refresh(packed.groups, 0),
        hits(kMaxHits) {
    // theta starts at -inf, as tau does. In lanes past the last query it is +inf, which keeps no row.
    for (AlignedBuffer<float>* const each : {&theta, &lane_order_theta}) {
      for (size_t q = 0; q < each->size(); ++q) (*each)[q] = q < tau_seen.size() ? -kInfinityF32 : kInfinityF32;
    }
  }
  std::vector<double> tau_seen;
  AlignedBuffer<float> theta;             // for digits in row order, as `likely` is
  AlignedBuffer<float> lane_order_theta;  // for digits in lane order, if they are coarser
  std::vector<float> likely;              // if the row test's first two terms reach this sum, the score probably reaches tau
  std::vector<int> until_refresh;         // scans of these groups until their thresholds are read again
  alignas(64) float bias_f32[kMaxScanRows];
  alignas(64) float test_norm_f32[kMaxScanRows];
  std::vector<Hit> hits;
  std::vector<DeferredPair> deferred;
  std::vector<int32_t> passing;  // rows of the block that pass the filter
  GatheredRows gathered;
};

using States = std::vector<QueryState*>;

// Applies the row test to blocks of rows and all packed queries.
class BlockScan {
 public:
  BlockScan(const SearchContext& context, const PackedQueries& packed, const States& states)
      : context_(context), packed_(packed), states_(states), kernels_(packed.kernels) {
    rows_at_once_ = rows_at_once(kernels_, packed.padded);
    by_groups_ = groups_to_scan(kernels_, packed.count);
    gathered_share_ = packed.count < kGroupQueries ? kGatheredShareOfFewQueries : kGatheredShare;
  }

 protected:
  // Applies the row test to the rows of a block that pass the filter and all packed queries, a few rows at once. first_row:
  // global number of the block's first row. view(at, rows, workspace) returns `rows` rows of the block, starting at row `at`,
  // for the kernels; gather(chosen, workspace) returns copies of chosen rows. refine(rows, local, query, hit, workspace) is called
  // for each pair that the row test keeps; the block's row `local` is row hit.row of `rows`.
  template <typename View, typename Gather, typename Refine>
  void scan_block(int64_t first_row, int64_t block_rows, View view, Gather gather, Refine refine) {
    context_.check_cancelled();
    const RowFilter& filter = context_.filter;
    const int64_t passing = filter.count(first_row, block_rows);
    if (passing == 0) return;
    std::unique_ptr<Workspace> workspace = borrow();
    const ScanSession session(kernels_);
    // number_of: the number in the block of row i of `rows`, or -1 if the row does not pass.
    const auto test = [&](const CodeRows& rows, auto number_of) {
      scan(rows, *workspace, [&](int64_t first_query, const Hit* hits, size_t count) {
        for (size_t h = 0; h < count; ++h) {
          const int64_t query = first_query + hits[h].query;
          // Kernels also report pairs of padding rows and padding queries.
          if (hits[h].row >= rows.rows || query >= packed_.count) continue;
          const int64_t local = number_of(hits[h].row);
          if (local < 0) continue;
          Hit hit = hits[h];
          if (has_coarser_digits(query)) {
            hit.value = row_order_value(rows, hit.row, packed_, query);
            if (hit.value < workspace->theta[query]) continue;
          }
          refine(rows, local, query, hit, *workspace);
        }
      });
    };
    if (static_cast<double>(passing) > gathered_share_ * static_cast<double>(block_rows)) {
      for (int64_t at = 0; at < block_rows; at += rows_at_once_) {
        const int64_t rows = std::min(rows_at_once_, block_rows - at);
        if (!filter.has_any(first_row + at, rows)) continue;
        test(view(at, rows, *workspace), [&](int64_t i) { return filter.has(first_row + at + i) ? at + i : -1; });
      }
    } else {
      workspace->passing.resize(block_rows);
      int32_t* const rows = workspace->passing.data();
      filter.list(first_row, block_rows, rows);
      for (int64_t at = 0; at < passing; at += rows_at_once_) {
        const ChosenRows chosen = {rows + at, std::min(rows_at_once_, passing - at), passing - at};
        test(gather(chosen, *workspace), [&](int64_t i) -> int64_t { return chosen.rows[i]; });
      }
    }
    give_back(std::move(workspace));
  }

  // Copies the codes of chosen rows of a block side by side.
  const int8_t* gather_codes(const int8_t* codes_i8, const ChosenRows& chosen, GatheredRows& gathered) const {
    const int64_t padded = packed_.padded;
    if (gathered.codes_i8.size() == 0) gathered.codes_i8 = AlignedBuffer<int8_t>(rows_at_once_ * padded);
    for (int64_t i = 0; i < chosen.count; ++i) {
      if (i + kGatherAhead < chosen.listed) {
        const int8_t* const ahead = codes_i8 + chosen.rows[i + kGatherAhead] * padded;
        for (int64_t j = 0; j < padded; j += 64) __builtin_prefetch(ahead + j);
      }
      std::memcpy(gathered.codes_i8.data() + i * padded, codes_i8 + chosen.rows[i] * padded, padded);
    }
    return gathered.codes_i8.data();
  }

  // Copies the numbers of chosen rows side by side.
  template <typename T>
  static const T* gather_numbers(const T* numbers, const ChosenRows& chosen, T* gathered) {
    for (int64_t i = 0; i < chosen.count; ++i) gathered[i] = numbers[chosen.rows[i]];
    return gathered;
  }

  // Calls finish(workspace) for the workspaces of all threads, which may no longer scan.
  template <typename Finish>
  void finish_workspaces(Finish finish) {
    context_.pool.run(static_cast<int64_t>(idle_.size()), [&](int64_t i) { finish(*idle_[i]); });
  }

  const SearchContext& context_;
  const PackedQueries& packed_;
  const States& states_;
  const Kernels& kernels_;

 private:
  // Whether the scan compares rows with coarser digits of the query. The pairs that it keeps are tested again by those in row order.
  bool has_coarser_digits(int64_t query) const { return packed_.lane_order && query < by_groups_ * kGroupQueries; }

  template <typename Refine>
  void scan(CodeRows view, Workspace& workspace, Refine refine) {
    // The rows after these are prefetched, a part in each call.
    const int8_t* const next = view.codes_i8 + view.rows * packed_.padded;
    const int64_t next_bytes = view.first_pass ? rows_at_once_ * packed_.padded : 0;
    for (int64_t group = 0; group < by_groups_; group += kernels_.groups_at_once) {
      const auto groups = static_cast<int>(std::min<int64_t>(kernels_.groups_at_once, by_groups_ - group));
      const int64_t query = group * kGroupQueries;
      int& wait = workspace.until_refresh[group];
      const bool is_due = wait <= 0;
      wait = is_due ? kRefreshEvery - 1 : wait - 1;
      if (is_due) refresh(workspace, query, groups * kGroupQueries);
      const AlignedBuffer<float>& theta = packed_.lane_order ? workspace.lane_order_theta : workspace.theta;
      const QueryTest test = packed_.group_factors().from(query, theta.data() + query);
      view.ahead = next + next_bytes * group / by_groups_ / 64 * 64;
      view.ahead_bytes = next + next_bytes * (group + groups) / by_groups_ / 64 * 64 - view.ahead;
      const size_t count =
          kernels_.scan_groups(view, packed_.lane_order_i8.data() + query * packed_.padded, groups, test, workspace.hits.data());
      view.first_pass = false;
      if (static_cast<double>(count) > kManyKept * static_cast<double>(view.rows * groups * kGroupQueries)) wait = 0;
      refine(query, workspace.hits.data(), count);
    }
    for (int64_t query = by_groups_ * kGroupQueries; query < packed_.count; query += kMaxRowsQueries) {
      const auto queries = static_cast<int>(std::min<int64_t>(kMaxRowsQueries, packed_.count - query));
      refresh(workspace, query, queries);
      const QueryTest test = packed_.row_order.from(query, workspace.theta.data() + query);
      const size_t count =
          kernels_.scan_rows(view, packed_.row_order_i8.data() + query * packed_.padded, queries, test, workspace.hits.data());
      view.first_pass = false;
      refine(query, workspace.hits.data(), count);
    }
  }

  void refresh(Workspace& workspace, int64_t first, int64_t lanes) const {
    for (int64_t q = first; q < std::min(first + lanes, packed_.count); ++q) {
      const double tau = states_[q]->tau();
      if (tau == workspace.tau_seen[q]) continue;
      const QueryBound& bound = packed_.row_order.bounds[q];
      workspace.tau_seen[q] = tau;
      workspace.theta[q] = bound.theta(tau);
      if (packed_.lane_order) workspace.lane_order_theta[q] = packed_.lane_order->bounds[q].theta(tau);
      workspace.likely[q] = static_cast<float>((tau - bound.offset_f64) / bound.step_f64);
    }
  }

  std::unique_ptr<Workspace> borrow() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>(packed_);
    std::unique_ptr<Workspace> workspace = std::move(idle_.back());
    idle_.pop_back();
    return workspace;
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

  int64_t rows_at_once_, by_groups_;
  double gathered_share_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

// Bounds the score of one pair from the float64 sum of the rotated query times the row's codes, and offers the row to the query's
// state.
inline void add_pair(const Shard& shard, const CodesBlock& block, int64_t local, const QueryBound& bound, double dot, QueryState& state) {
  const QueryBound::Interval interval =
      bound.interval(dot, block.scale_f32[local], block.residual_f32[local], block.norm_f32[local], block.bias_f64[local]);
  if (interval.upper < state.tau()) return;
  state.add_hit(shard.first_row + block.first_row + local, interval.lower, interval.upper);
}

// The same for a pair whose sum is not known yet.
inline void refine_pair(const Shard& shard, const CodesBlock& block, int64_t local, const PackedQueries& packed, int64_t query,
                        QueryState& state, const Kernels& kernels) {
  const double dot =
      kernels.dot_codes(packed.rotated_f64.data() + query * packed.padded, block.codes_i8 + local * packed.padded, packed.padded);
  add_pair(shard, block, local, packed.row_order.bounds[query], dot, state);
}

}  // namespace trawl
