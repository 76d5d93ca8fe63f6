// What passes over codes and over screens have in common.
#pragma once
#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "scan_codes.hpp"

namespace trawl {

inline constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();

// A thread's own view of the thresholds and its work space, lent from item to item.
struct Workspace {
  explicit Workspace(const PackedQueries& packed)
      : tau_seen(packed.count, -kInfinity), theta(packed.groups * kLanes), likely(packed.count, -kInfinityF32), hits(kMaxHits) {
    // theta is -inf as tau is; lanes past the last query keep nothing.
    for (size_t q = 0; q < theta.size(); ++q) theta[q] = q < tau_seen.size() ? -kInfinityF32 : kInfinityF32;
  }
  std::vector<double> tau_seen;
  AlignedBuffer<float> theta;
  std::vector<float> likely;  // of the row test's first two terms: from here on the score itself is likely to reach tau
  alignas(64) float bias_f32[kMaxScanRows];
  alignas(64) float norm_f32[kMaxScanRows];
  std::vector<Hit> hits;
};

using States = std::vector<QueryState*>;

// What passes over codes and over screens have in common: some rows against all packed queries, by the row test.
class BlockScan {
 public:
  BlockScan(const PackedQueries& packed, const States& states, const SearchOptions& options, const Kernels& kernels)
      : packed_(packed), states_(states), options_(options), kernels_(kernels) {
    // Rows handed to a kernel at once stay in the nearer caches while all queries pass over them.
    const int64_t fit = 49152 / packed.padded / 16 * 16;
    rows_at_once_ = std::min<int64_t>(std::max<int64_t>(fit, 16), 48);
    by_groups_ = groups_to_scan(kernels, packed.count);
  }

 protected:
  // A block whose first row has the number first_row: the rows that pass the filter, a few at once, against all packed
  // queries. view(at, rows, workspace) gives rows from `at` of the block on for the kernels;
  // settle(rows, at, query, hit, workspace) is told of the pairs that the row test keeps.
  template <typename View, typename Settle>
  void scan_block(int64_t first_row, int64_t block_rows, View view, Settle settle) {
    check_cancelled(options_.cancel);
    if (!filter_has_any(options_.filter_bits, first_row, block_rows)) return;
    std::unique_ptr<Workspace> workspace = borrow();
    for (int64_t at = 0; at < block_rows; at += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, block_rows - at);
      if (!filter_has_any(options_.filter_bits, first_row + at, rows)) continue;
      const CodeRows here = view(at, rows, *workspace);
      scan(here, *workspace, [&](int64_t first_query, const Hit* hits, size_t count) {
        for (size_t h = 0; h < count; ++h) {
          const int64_t query = first_query + hits[h].query;
          // Kernels pad rows and queries.
          if (hits[h].row >= rows || query >= packed_.count) continue;
          if (!filter_has(options_.filter_bits, first_row + at + hits[h].row)) continue;
          settle(here, at, query, hits[h], *workspace);
        }
      });
    }
    give_back(std::move(workspace));
  }

  const PackedQueries& packed_;
  const States& states_;
  const SearchOptions& options_;
  const Kernels& kernels_;

 private:
  template <typename Settle>
  void scan(CodeRows view, Workspace& workspace, Settle settle) {
    for (int64_t group = 0; group < by_groups_; group += kernels_.groups_at_once) {
      const auto groups = static_cast<int>(std::min<int64_t>(kernels_.groups_at_once, by_groups_ - group));
      const int64_t query = group * kLanes;
      const RowTest test = refresh(workspace, query, groups * kLanes);
      const size_t count = kernels_.scan_groups(view, packed_.grouped_i8.data() + query * packed_.padded, groups, test,
                                                workspace.hits.data());
      view.first_pass = false;
      settle(query, workspace.hits.data(), count);
    }
    for (int64_t query = by_groups_ * kLanes; query < packed_.count; query += kMaxRowsQueries) {
      const auto queries = static_cast<int>(std::min<int64_t>(kMaxRowsQueries, packed_.count - query));
      const RowTest test = refresh(workspace, query, queries);
      const size_t count = kernels_.scan_rows(view, packed_.natural_i8.data() + query * packed_.padded, queries, test,
                                              workspace.hits.data());
      view.first_pass = false;
      settle(query, workspace.hits.data(), count);
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

// The float64 bound of one pair from the row's codes.
inline void settle_pair(const Shard& shard, const CodesBlock& block, int64_t local, const PackedQueries& packed, int64_t query,
                 QueryState& state, const Kernels& kernels) {
  const int64_t row = shard.first_row + block.first_row + local;
#ifdef TRAWL_MUTATE_LOSE_CANDIDATE
  if (row % 97 == 96) return;
#endif
  const double dot = kernels.dot_codes(packed.turned_f64.data() + query * packed.padded,
                                       block.codes_i8 + local * packed.padded, packed.padded);
  const QueryBound::Interval interval =
      packed.bounds[query].interval(dot, block.scale_f32[local], block.residual_f32[local], block.norm_f32[local],
                                    block.bias_f64[local]);
  if (interval.upper < state.tau()) return;
  state.offer(row, interval.lower, interval.upper);
}

}  // namespace trawl
