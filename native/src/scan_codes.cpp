#include "scan_codes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "rounding.hpp"

namespace trawl {

bool filter_has_any(const uint64_t* bits, int64_t first, int64_t count) {
  if (bits == nullptr) return true;
  for (int64_t row = first; row < first + count;) {
    const int64_t in_word = row & 63, take = std::min<int64_t>(64 - in_word, first + count - row);
    const uint64_t mask = (take == 64 ? ~uint64_t{0} : (uint64_t{1} << take) - 1) << in_word;
    if ((bits[row >> 6] & mask) != 0) return true;
    row += take;
  }
  return false;
}

namespace {

// A thread's own view of the thresholds and its work space, lent from item to item.
struct Workspace {
  explicit Workspace(const PackedQueries& packed)
      : tau_seen(packed.count, -kInfinity),
        theta(packed.groups * kLanes),
        hits(kMaxHits) {
    // theta is -inf as tau is; lanes past the last query keep nothing.
    for (size_t q = 0; q < theta.size(); ++q) {
      const float inf = std::numeric_limits<float>::infinity();
      theta[q] = q < tau_seen.size() ? -inf : inf;
    }
  }
  std::vector<double> tau_seen;
  AlignedBuffer<float> theta;
  alignas(64) float bias_f32[kMaxScanRows];
  alignas(64) float norm_f32[kMaxScanRows];
  std::vector<Hit> hits;
};

class ShardScan {
 public:
  ShardScan(const Shard& shard, const PackMean& mean, const PackedQueries& packed, std::vector<QueryState>& states,
            const SearchOptions& options, const Kernels& kernels)
      : shard_(shard), codes_(*shard.codes), mean_(mean), packed_(packed), states_(states), options_(options),
        kernels_(kernels) {
    // Rows handed to a kernel at once stay in the nearer caches while all queries pass over them.
    const int64_t fit = 49152 / packed.padded / 16 * 16;
    rows_at_once_ = std::min<int64_t>(std::max<int64_t>(fit, 16), 48);
    by_groups_ = groups_to_scan(kernels, packed.count);
  }

  void block(int64_t index) {
    check_cancelled(options_.cancel);
    const CodesBlock block = codes_.block(index);
    const int64_t first = shard_.first_row + block.first_row;
    if (!filter_has_any(options_.filter_bits, first, block.rows)) return;
    std::unique_ptr<Workspace> workspace = borrow();
    for (int64_t at = 0; at < block.rows; at += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, block.rows - at);
      if (!filter_has_any(options_.filter_bits, first + at, rows)) continue;
      const float* norm_f32 = prepare_rows(block, at, rows, *workspace);
      CodeRows view = {block.codes_i8 + at * packed_.padded, packed_.padded, static_cast<int>(rows),
                             block.scale_f32 + at, block.residual_f32 + at, norm_f32,
                             workspace->bias_f32, block.code_sum_i32 + at, true};
      scan(block, at, view, *workspace);
    }
    give_back(std::move(workspace));
  }

 private:
  // The rows' numbers as the row test wants them, just before they are used: the biases in float32, and the norms, which
  // are the file's own unless a row needs care.
  const float* prepare_rows(const CodesBlock& block, int64_t at, int64_t count, Workspace& workspace) const {
    const double* bias = block.bias_f64 + at;
    const float *norm = block.norm_f32 + at, *residual = block.residual_f32 + at;
    const int64_t rows = (count + 15) / 16 * 16;
    for (int64_t i = 0; i < rows; i += 8) __builtin_prefetch(bias + i + 96);
    row_test_biases(mean_.metric, bias, norm, rows, mean_.kappa, workspace.bias_f32);
    // Plain loops of one type each, which compilers turn into vectors.
    int32_t care = 0;
    for (int64_t i = 0; i < rows; ++i) care |= !(norm[i] <= kCarefulNorm) | !(residual[i] <= kCarefulNorm);
    double largest_bias = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const double size = std::fabs(bias[i]);
      largest_bias = size > largest_bias ? size : largest_bias;
    }
    if (!care && largest_bias <= kCarefulBias) return norm;
    for (int64_t i = 0; i < rows; ++i) {
      const bool risky = row_needs_care(bias[i], norm[i], residual[i]);
      workspace.norm_f32[i] = risky ? std::numeric_limits<float>::infinity() : norm[i];
      if (risky) workspace.bias_f32[i] = 0;
    }
    return workspace.norm_f32;
  }

  void scan(const CodesBlock& block, int64_t at, CodeRows view, Workspace& workspace) {
    for (int64_t group = 0; group < by_groups_; group += kernels_.groups_at_once) {
      const auto groups = static_cast<int>(std::min<int64_t>(kernels_.groups_at_once, by_groups_ - group));
      const int64_t query = group * kLanes;
      const RowTest test = refresh(workspace, query, groups * kLanes);
      const size_t count = kernels_.scan_groups(view, packed_.grouped_i8.data() + query * packed_.padded, groups, test,
                                                workspace.hits.data());
      view.first_pass = false;
      settle(block, at, view.rows, query, workspace.hits.data(), count);
    }
    for (int64_t query = by_groups_ * kLanes; query < packed_.count; query += kMaxRowsQueries) {
      const auto queries = static_cast<int>(std::min<int64_t>(kMaxRowsQueries, packed_.count - query));
      const RowTest test = refresh(workspace, query, queries);
      const size_t count = kernels_.scan_rows(view, packed_.natural_i8.data() + query * packed_.padded, queries, test,
                                              workspace.hits.data());
      view.first_pass = false;
      settle(block, at, view.rows, query, workspace.hits.data(), count);
    }
  }

  RowTest refresh(Workspace& workspace, int64_t first, int64_t lanes) const {
    for (int64_t q = first; q < std::min(first + lanes, packed_.count); ++q) {
      const double tau = states_[q].tau();
      if (tau == workspace.tau_seen[q]) continue;
      workspace.tau_seen[q] = tau;
      workspace.theta[q] = packed_.bounds[q].theta(tau);
    }
    return {packed_.phi.data() + first, packed_.a.data() + first, packed_.c.data() + first,
            workspace.theta.data() + first};
  }

  // The few pairs left are bounded in float64 at once, while the codes are in cache.
  void settle(const CodesBlock& block, int64_t at, int rows, int64_t first_query, const Hit* hits, size_t count) {
    for (size_t h = 0; h < count; ++h) {
      const int64_t local = at + hits[h].row, query = first_query + hits[h].query;
      if (hits[h].row >= rows || query >= packed_.count) continue;
      const int64_t row = shard_.first_row + block.first_row + local;
      if (!filter_has(options_.filter_bits, row)) continue;
#ifdef TRAWL_MUTATE_LOSE_CANDIDATE
      if (row % 97 == 96) continue;
#endif
      const double dot = kernels_.dot_codes(packed_.turned_f64.data() + query * packed_.padded,
                                            block.codes_i8 + local * packed_.padded, packed_.padded);
      const QueryBound::Interval interval =
          packed_.bounds[query].interval(dot, block.scale_f32[local], block.residual_f32[local], block.norm_f32[local],
                                         block.bias_f64[local]);
      if (interval.upper < states_[query].tau()) continue;
      states_[query].offer(row, interval.lower, interval.upper);
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

  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
  const PackedQueries& packed_;
  std::vector<QueryState>& states_;
  const SearchOptions& options_;
  const Kernels& kernels_;
  int64_t rows_at_once_, by_groups_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace

void scan_codes(const Index& index, const double* queries, std::vector<QueryState>& states,
                const SearchOptions& options, const Kernels& kernels, ThreadPool& pool) {
  std::unique_ptr<PackMean> mean;
  std::unique_ptr<PackedQueries> packed;
  for (const Shard& shard : index.shards()) {
    if (!shard.codes || shard.codes->rows() == 0) continue;
    if (!mean || !mean->matches(*shard.codes)) {
      packed.reset();
      mean = std::make_unique<PackMean>(index.metric(), *shard.codes);
      packed = std::make_unique<PackedQueries>(*mean, queries, static_cast<int64_t>(states.size()), kernels, pool);
    }
    ShardScan scan(shard, *mean, *packed, states, options, kernels);
    pool.run(shard.codes->blocks(), [&](int64_t block) { scan.block(block); });
  }
}

}  // namespace trawl
