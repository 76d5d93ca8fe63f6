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

constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();

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
class Scan {
 public:
  Scan(const PackedQueries& packed, const States& states, const SearchOptions& options, const Kernels& kernels)
      : packed_(packed), states_(states), options_(options), kernels_(kernels) {
    // Rows handed to a kernel at once stay in the nearer caches while all queries pass over them.
    const int64_t fit = 49152 / packed.padded / 16 * 16;
    rows_at_once_ = std::min<int64_t>(std::max<int64_t>(fit, 16), 48);
    by_groups_ = groups_to_scan(kernels, packed.count);
  }

 protected:
  // settle(first_query, hits, count, workspace) is told of the pairs that the row test keeps.
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

  const PackedQueries& packed_;
  const States& states_;
  const SearchOptions& options_;
  const Kernels& kernels_;
  int64_t rows_at_once_, by_groups_;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

// The float64 bound of one pair from the row's codes.
void settle_pair(const Shard& shard, const CodesBlock& block, int64_t local, const PackedQueries& packed, int64_t query,
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

class CodesScan : public Scan {
 public:
  CodesScan(const Shard& shard, const PackMean& mean, const PackedQueries& packed, const States& states,
            const SearchOptions& options, const Kernels& kernels)
      : Scan(packed, states, options, kernels), shard_(shard), codes_(*shard.codes), mean_(mean) {}

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
      const CodeRows view = {block.codes_i8 + at * packed_.padded, packed_.padded, static_cast<int>(rows),
                             block.scale_f32 + at, block.residual_f32 + at, norm_f32,
                             workspace->bias_f32, block.code_sum_i32 + at, true};
      scan(view, *workspace, [&](int64_t first_query, const Hit* hits, size_t count) {
        // The few pairs left are bounded in float64 at once, while the codes are in cache.
        for (size_t h = 0; h < count; ++h) {
          const int64_t query = first_query + hits[h].query;
          if (hits[h].row >= rows || query >= packed_.count) continue;
          if (!filter_has(options_.filter_bits, first + at + hits[h].row)) continue;
          settle_pair(shard_, block, at + hits[h].row, packed_, query, *states_[query], kernels_);
        }
      });
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
      workspace.norm_f32[i] = risky ? kInfinityF32 : norm[i];
      if (risky) workspace.bias_f32[i] = 0;
    }
    return workspace.norm_f32;
  }

  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
};

// The pass before: what the screen cannot drop is settled by the codes, at once where the score is likely to raise tau, else
// when the pass is over and tau has risen.
class ScreenScan : public Scan {
 public:
  // packed: for the screen; in_codes: the same queries for the codes, query q being number numbers[q] of them.
  ScreenScan(const Shard& shard, const PackedQueries& packed, const PackedQueries& in_codes,
             const std::vector<int64_t>& numbers, int64_t most_deferred, const States& states,
             const SearchOptions& options, const Kernels& kernels)
      : Scan(packed, states, options, kernels), shard_(shard), screen_(*shard.screen), codes_(*shard.codes),
        in_codes_(in_codes), numbers_(numbers), most_deferred_(most_deferred) {}

  void block(int64_t index) {
    const CodesBlock behind = codes_.block(index);
    pass(index, [&](const CodeRows& view, int64_t at, int64_t first_query, const Hit* hits, size_t count, const Workspace& workspace) {
      for (size_t h = 0; h < count; ++h) {
        const int64_t query = first_query + hits[h].query, row = hits[h].row;
        if (!counts(view, behind.first_row + at, hits[h], query)) continue;
        QueryState& state = *states_[query];
        const float margin = packed_.a[query] * view.residual_f32[row] + packed_.c[query] * view.norm_f32[row];
        const bool waits = hits[h].value - margin < workspace.likely[query] &&
                           state.defer(hits[h].value, behind.first_row + at + row, most_deferred_);
        if (!waits) settle_pair(shard_, behind, at + row, in_codes_, numbers_[query], state, kernels_);
      }
    });
  }

  // Counts what would be kept, and the rows that were looked at.
  void trial(int64_t index, std::vector<std::atomic<int64_t>>& kept, std::atomic<int64_t>& seen) {
    const int64_t first_row = codes_.block(index).first_row;
    pass(index, [&](const CodeRows& view, int64_t at, int64_t first_query, const Hit* hits, size_t count, const Workspace&) {
      if (first_query == 0) {
        for (int64_t i = 0; i < view.rows; ++i) seen += filter_has(options_.filter_bits, shard_.first_row + first_row + at + i);
      }
      for (size_t h = 0; h < count; ++h) {
        const int64_t query = first_query + hits[h].query;
        if (counts(view, first_row + at, hits[h], query)) kept[query].fetch_add(1, std::memory_order_relaxed);
      }
    });
  }

 private:
  bool counts(const CodeRows& view, int64_t first_row, const Hit& hit, int64_t query) const {
    return hit.row < view.rows && query < packed_.count &&
           filter_has(options_.filter_bits, shard_.first_row + first_row + hit.row);
  }

  template <typename Settle>
  void pass(int64_t index, Settle settle) {
    check_cancelled(options_.cancel);
    const ScreenBlock block = screen_.block(index);
    const int64_t first = shard_.first_row + block.first_row;
    if (!filter_has_any(options_.filter_bits, first, block.rows)) return;
    std::unique_ptr<Workspace> workspace = borrow();
    for (int64_t at = 0; at < block.rows; at += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, block.rows - at);
      if (!filter_has_any(options_.filter_bits, first + at, rows)) continue;
      const CodeRows view = {block.codes_i8 + at * packed_.padded, packed_.padded, static_cast<int>(rows),
                             block.scale_f32 + at, block.rest_f32 + at, block.size_f32 + at,
                             block.bias_f32 + at, block.code_sum_i32 + at, true};
      scan(view, *workspace, [&](int64_t first_query, const Hit* hits, size_t count) {
        settle(view, at, first_query, hits, count, *workspace);
      });
    }
    give_back(std::move(workspace));
  }

  const Shard& shard_;
  const ScreenFile& screen_;
  const CodesFile& codes_;
  const PackedQueries& in_codes_;
  const std::vector<int64_t>& numbers_;
  int64_t most_deferred_;
};

void forget_dropped(const QueryBound& bound, QueryState& state) {
  const float theta = bound.theta(state.tau());
  std::vector<Deferred>& deferred = state.deferred();
  deferred.erase(std::remove_if(deferred.begin(), deferred.end(), [&](const Deferred& d) { return d.value < theta; }),
                 deferred.end());
}

// One shard through its screen. Which rows are looked at by what depends on timing; the answer does not.
class ScreenedShard {
 public:
  ScreenedShard(const Shard& shard, const PackMean& mean, const PackedQueries& in_codes, const double* queries,
                const States& states, const SearchOptions& options, const Kernels& kernels, ThreadPool& pool)
      : shard_(shard), mean_(mean), in_codes_(in_codes), queries_(queries), states_(states), options_(options),
        kernels_(kernels), pool_(pool), packer_(mean, shard.screen->basis().data(), shard.screen->directions(), shard.screen->defect(),
                shard.screen->sign_seed(), kernels) {}

  void run() {
    const int64_t blocks = shard_.codes->blocks(), per_block = shard_.codes->rows_per_block();
    // Some rows, spread evenly, by the codes: for a threshold to begin with, and to try the screen on.
    const int64_t wanted = std::max({(options_.screen.sample_rows + per_block - 1) / per_block, blocks / kSampleShare, int64_t{1}});
    if (wanted * 4 > blocks) return codes_blocks(all_blocks(blocks), in_codes_, states_);
    const int64_t stride = blocks / wanted;
    std::vector<int64_t> sample, others;
    for (int64_t b = 0; b < blocks; ++b) (b % stride == 0 ? sample : others).push_back(b);
    codes_blocks(sample, in_codes_, states_);

    screened_.resize(states_.size());
    for (size_t q = 0; q < states_.size(); ++q) screened_[q] = static_cast<int64_t>(q);
    pack();
    try_on({sample.begin(), sample.begin() + static_cast<int64_t>((sample.size() + 3) / 4)});

    // Rounds of growing length; between them, queries that the screen keeps too many rows for leave it.
    size_t next = 0, round = std::max<size_t>(sample.size(), 1);
    const double allowance = options_.screen.settled_share * static_cast<double>(shard_.codes->rows()) *
                             std::max(1.0, 16.0 / static_cast<double>(states_.size()));
    const int64_t most_deferred = 1024 + static_cast<int64_t>(2 * allowance);
    while (next < others.size()) {
      const size_t end = others.size() - next < 2 * round ? others.size() : next + round;
      const std::vector<int64_t> here(others.begin() + next, others.begin() + end);
      if (!screened_.empty()) {
        ScreenScan scan(shard_, *packed_, in_codes_, screened_, most_deferred, screened_states_, options_, kernels_);
        pool_.run(static_cast<int64_t>(here.size()), [&](int64_t i) { scan.block(here[i]); });
      }
      if (direct_) codes_blocks(here, *direct_, direct_states_);
      next = end;
      round *= 2;
      if (next >= others.size() || screened_.empty()) continue;
      std::vector<char> leaves(screened_.size(), 0);
      pool_.run(static_cast<int64_t>(screened_.size()), [&](int64_t i) {
        QueryState& state = *screened_states_[i];
        if (state.gave_up() || static_cast<double>(state.deferred().size()) <= allowance) return;
        forget_dropped(packed_->bounds[i], state);
        leaves[i] = static_cast<double>(state.deferred().size()) > allowance;
      });
      leave(leaves);
    }
    if (!screened_.empty()) settle_deferred();
  }

 private:
  static constexpr int64_t kSampleShare = 128;

  static std::vector<int64_t> all_blocks(int64_t count) {
    std::vector<int64_t> list(count);
    for (int64_t b = 0; b < count; ++b) list[b] = b;
    return list;
  }

  void codes_blocks(const std::vector<int64_t>& blocks, const PackedQueries& packed, const States& states) {
    CodesScan scan(shard_, mean_, packed, states, options_, kernels_);
    pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.block(blocks[i]); });
  }

  std::vector<double> gathered(const std::vector<int64_t>& numbers) const {
    std::vector<double> queries(numbers.size() * mean_.dimension);
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::copy(queries_ + numbers[i] * mean_.dimension, queries_ + (numbers[i] + 1) * mean_.dimension,
                queries.data() + i * mean_.dimension);
    }
    return queries;
  }

  // Packs the screened queries as they are now.
  void pack() {
    screened_states_.clear();
    for (const int64_t q : screened_) screened_states_.push_back(states_[q]);
    const bool all = screened_.size() == states_.size();
    const std::vector<double> some = all ? std::vector<double>() : gathered(screened_);
    packed_ = std::make_unique<PackedQueries>(packer_, all ? queries_ : some.data(), static_cast<int64_t>(screened_.size()),
                                              kernels_, pool_);
  }

  void try_on(const std::vector<int64_t>& blocks) {
    std::vector<std::atomic<int64_t>> kept(screened_.size());
    for (auto& each : kept) each = 0;
    std::atomic<int64_t> seen{0};
    ScreenScan scan(shard_, *packed_, in_codes_, screened_, 0, screened_states_, options_, kernels_);
    pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.trial(blocks[i], kept, seen); });
    std::vector<char> leaves(screened_.size(), 0);
    for (size_t i = 0; i < kept.size(); ++i) {
      leaves[i] = static_cast<double>(kept[i]) > options_.screen.trial_share * static_cast<double>(seen);
    }
    leave(leaves);
  }

  // The queries marked go on with the codes; what they deferred is settled first.
  void leave(const std::vector<char>& leaves) {
    if (std::find(leaves.begin(), leaves.end(), 1) == leaves.end()) return;
    pool_.run(static_cast<int64_t>(leaves.size()), [&](int64_t i) {
      if (leaves[i] != 0) settle_deferred_of(i);
    });
    std::vector<int64_t> stay;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i] == 0) {
        stay.push_back(screened_[i]);
      } else {
        left_.push_back(screened_[i]);
        direct_states_.push_back(screened_states_[i]);
      }
    }
    screened_ = std::move(stay);
    if (!screened_.empty()) pack();
    const std::vector<double> some = gathered(left_);
    direct_ = std::make_unique<PackedQueries>(CodesPacker(mean_), some.data(), static_cast<int64_t>(left_.size()), kernels_, pool_);
  }

  void settle_deferred() {
    pool_.run(static_cast<int64_t>(screened_.size()), [&](int64_t i) {
      check_cancelled(options_.cancel);
      settle_deferred_of(i);
    });
  }

  // In order of falling bounds, so that tau rises as fast as it can and as few rows' codes as possible are read.
  void settle_deferred_of(int64_t i) {
    QueryState& state = *screened_states_[i];
    if (state.gave_up()) return;
    forget_dropped(packed_->bounds[i], state);
    std::vector<Deferred> deferred = std::move(state.deferred());
    state.deferred().clear();
    for (Deferred& each : deferred) {
      if (std::isnan(each.value)) each.value = kInfinityF32;
    }
    std::sort(deferred.begin(), deferred.end(), [](const Deferred& a, const Deferred& b) {
      return a.value > b.value || (a.value == b.value && a.row < b.row);
    });
    const CodesFile& codes = *shard_.codes;
    const int64_t per_block = codes.rows_per_block();
    constexpr size_t kAhead = 4;
    double tau = state.tau();
    float theta = packed_->bounds[i].theta(tau);
    size_t done = 0;
    for (; done < deferred.size() && !(deferred[done].value < theta); ++done) {
      if (done + kAhead < deferred.size()) {
        const int64_t ahead = deferred[done + kAhead].row;
        const int8_t* row = codes.block(ahead / per_block).codes_i8 + ahead % per_block * codes.padded();
        for (int64_t j = 0; j < codes.padded(); j += 64) __builtin_prefetch(row + j);
      }
      const int64_t row = deferred[done].row;
      settle_pair(shard_, codes.block(row / per_block), row % per_block, in_codes_, screened_[i], state, kernels_);
      if (state.tau() == tau) continue;
      tau = state.tau();
      theta = packed_->bounds[i].theta(tau);
    }
    state.count_settled(static_cast<int64_t>(done));
  }

  const Shard& shard_;
  const PackMean& mean_;
  const PackedQueries& in_codes_;
  const double* queries_;
  const States& states_;
  const SearchOptions& options_;
  const Kernels& kernels_;
  ThreadPool& pool_;
  const ScreenPacker packer_;
  std::vector<int64_t> screened_, left_;  // numbers of queries
  States screened_states_, direct_states_;
  std::unique_ptr<PackedQueries> packed_;  // the screened ones, for the screen
  std::unique_ptr<PackedQueries> direct_;  // those that left, for the codes
};

}  // namespace

void scan_codes(const Index& index, const double* queries, std::vector<QueryState>& states,
                const SearchOptions& options, const Kernels& kernels, ThreadPool& pool) {
  States pointers;
  for (QueryState& state : states) pointers.push_back(&state);
  std::unique_ptr<PackMean> mean;
  std::unique_ptr<PackedQueries> packed;
  for (const Shard& shard : index.shards()) {
    if (!shard.codes || shard.codes->rows() == 0) continue;
    if (!mean || !mean->matches(*shard.codes)) {
      packed.reset();
      mean = std::make_unique<PackMean>(index.metric(), *shard.codes);
      packed = std::make_unique<PackedQueries>(CodesPacker(*mean), queries, static_cast<int64_t>(states.size()), kernels, pool);
    }
    if (shard.screen && options.screen.use) {
      ScreenedShard(shard, *mean, *packed, queries, pointers, options, kernels, pool).run();
    } else {
      CodesScan scan(shard, *mean, *packed, pointers, options, kernels);
      pool.run(shard.codes->blocks(), [&](int64_t block) { scan.block(block); });
    }
  }
}

}  // namespace trawl
