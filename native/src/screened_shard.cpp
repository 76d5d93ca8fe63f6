#include "screened_shard.hpp"

#include <algorithm>
#include <cmath>

#include "codes_scan.hpp"
#include "screen_scan.hpp"

namespace trawl {

namespace {

void forget_dropped(const QueryBound& bound, QueryState& state) {
  const float theta = bound.theta(state.tau());
  std::vector<Deferred>& deferred = state.deferred();
  deferred.erase(std::remove_if(deferred.begin(), deferred.end(), [&](const Deferred& d) { return d.value < theta; }),
                 deferred.end());
}

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
    ScreenScan scan(shard_, *packed_, in_codes_, screened_, 0, screened_states_, options_, kernels_);
    pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.trial(blocks[i], kept); });
    int64_t seen = 0;
    for (const int64_t block : blocks) {
      const CodesBlock rows = shard_.codes->block(block);
      for (int64_t i = 0; i < rows.rows; ++i) seen += filter_has(options_.filter_bits, shard_.first_row + rows.first_row + i);
    }
    // Where the filter leaves none of these rows, nothing says that the screen would pay.
    const double most_kept = seen == 0 ? -1 : options_.screen.trial_share * static_cast<double>(seen);
    std::vector<char> leaves(screened_.size(), 0);
    for (size_t i = 0; i < kept.size(); ++i) {
      leaves[i] = static_cast<double>(kept[i]) > most_kept;
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

void scan_screened(const Shard& shard, const PackMean& mean, const PackedQueries& in_codes, const double* queries,
                   const States& states, const SearchOptions& options, const Kernels& kernels, ThreadPool& pool) {
  ScreenedShard(shard, mean, in_codes, queries, states, options, kernels, pool).run();
}

}  // namespace trawl
