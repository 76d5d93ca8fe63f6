// The loop over a block of rows, for the pass over codes and the pass over a prefilter.
#pragma once
#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "query_pack.hpp"
#include "query_state.hpp"
#include "scan_codes.hpp"
#include "search_context.hpp"

namespace trawl {

inline constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();

// The thresholds that one thread last read, and its buffers. A later block reuses them.
struct Workspace {
  explicit Workspace(const PackedQueries& packed)
      : tau_seen(packed.count, -kInfinity),
        theta(packed.groups * kLanes),
        likely(packed.count, -kInfinityF32),
        hits(kMaxHits) {
    // theta starts at -inf, as tau does. In lanes past the last query it is +inf, which keeps no row.
    for (size_t q = 0; q < theta.size(); ++q) theta[q] = q < tau_seen.size() ? -kInfinityF32 : kInfinityF32;
  }
  std::vector<double> tau_seen;
  AlignedBuffer<float> theta;
  std::vector<float> likely;  // if the row test's first two terms reach this sum, the score probably reaches tau
  alignas(64) float bias_f32[kMaxScanRows];
  alignas(64) float norm_f32[kMaxScanRows];
  std::vector<Hit> hits;
};

using States = std::vector<QueryState*>;

// Applies the row test to blocks of rows and all packed queries.
class BlockScan {
 public:
  BlockScan(const SearchContext& context, const PackedQueries& packed, const States& states)
      : context_(context), packed_(packed), states_(states), kernels_(context.kernels) {
    // The rows must stay in the first two cache levels while all queries are compared with them.
    const int64_t fit = 49152 / packed.padded / 16 * 16;
    rows_at_once_ = std::min<int64_t>(std::max<int64_t>(fit, 16), 48);
    by_groups_ = groups_to_scan(kernels_, packed.count);
  }

 protected:
  // Applies the row test to the rows of a block that pass the filter and all packed queries, a few rows at once. first_row:
  // global number of the block's first row. view(at, rows, workspace) returns `rows` rows of the block, starting at row `at`,
  // for the kernels. refine(rows, at, query, hit, workspace) is called for each pair that the row test keeps.
  template <typename View, typename Refine>
  void scan_block(int64_t first_row, int64_t block_rows, View view, Refine refine) {
    context_.check_cancelled();
    if (!context_.filter.has_any(first_row, block_rows)) return;
    std::unique_ptr<Workspace> workspace = borrow();
    for (int64_t at = 0; at < block_rows; at += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, block_rows - at);
      if (!context_.filter.has_any(first_row + at, rows)) continue;
      const CodeRows here = view(at, rows, *workspace);
      scan(here, *workspace, [&](int64_t first_query, const Hit* hits, size_t count) {
        for (size_t h = 0; h < count; ++h) {
          const int64_t query = first_query + hits[h].query;
          // Kernels also report pairs of padding rows and padding queries.
          if (hits[h].row >= rows || query >= packed_.count) continue;
          if (!context_.filter.has(first_row + at + hits[h].row)) continue;
          refine(here, at, query, hits[h], *workspace);
        }
      });
    }
    give_back(std::move(workspace));
  }

  const SearchContext& context_;
  const PackedQueries& packed_;
  const States& states_;
  const Kernels& kernels_;

 private:
  template <typename Refine>
  void scan(CodeRows view, Workspace& workspace, Refine refine) {
    for (int64_t group = 0; group < by_groups_; group += kernels_.groups_at_once) {
      const auto groups = static_cast<int>(std::min<int64_t>(kernels_.groups_at_once, by_groups_ - group));
      const int64_t query = group * kLanes;
      const RowTest test = refresh(workspace, query, groups * kLanes);
      const size_t count = kernels_.scan_groups(view, packed_.grouped_i8.data() + query * packed_.padded, groups, test,
                                                workspace.hits.data());
      view.first_pass = false;
      refine(query, workspace.hits.data(), count);
    }
    for (int64_t query = by_groups_ * kLanes; query < packed_.count; query += kMaxRowsQueries) {
      const auto queries = static_cast<int>(std::min<int64_t>(kMaxRowsQueries, packed_.count - query));
      const RowTest test = refresh(workspace, query, queries);
      const size_t count = kernels_.scan_rows(view, packed_.natural_i8.data() + query * packed_.padded, queries, test,
                                              workspace.hits.data());
      view.first_pass = false;
      refine(query, workspace.hits.data(), count);
    }
  }

  RowTest refresh(Workspace& workspace, int64_t first, int64_t lanes) const {
    for (int64_t q = first; q < std::min(first + lanes, packed_.count); ++q) {
      const double tau = states_[q]->tau();
      if (tau == workspace.tau_seen[q]) continue;
      const QueryBound& bound = packed_.bounds[q];
      workspace.tau_seen[q] = tau;
      workspace.theta[q] = bound.theta(tau);
      workspace.likely[q] = static_cast<float>((tau - bound.offset_f64) / bound.step_f64);
    }
    return {packed_.phi.data() + first, packed_.a.data() + first, packed_.c.data() + first,
            workspace.theta.data() + first};
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
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

// Bounds the score of one pair in float64 from the row's codes, and offers the row to the query's state.
inline void refine_pair(const Shard& shard, const CodesBlock& block, int64_t local, const PackedQueries& packed, int64_t query,
                 QueryState& state, const Kernels& kernels) {
  const int64_t row = shard.first_row + block.first_row + local;
#ifdef TRAWL_MUTATE_LOSE_CANDIDATE
  if (row % 97 == 96) return;
#endif
  const double dot = kernels.dot_codes(packed.rotated_f64.data() + query * packed.padded,
                                       block.codes_i8 + local * packed.padded, packed.padded);
  const QueryBound::Interval interval =
      packed.bounds[query].interval(dot, block.scale_f32[local], block.residual_f32[local], block.norm_f32[local],
                                    block.bias_f64[local]);
  if (interval.upper < state.tau()) return;
  state.offer(row, interval.lower, interval.upper);
}

}  // namespace trawl
