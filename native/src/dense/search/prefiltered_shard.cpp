// Names as in docs/certificate.md#the-prefilter.
#include "dense/search/prefiltered_shard.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "dense/search/codes_scan.hpp"
#include "dense/search/prefilter_scan.hpp"
#include "dense/search/scattered_rows.hpp"

namespace trawl {

namespace {

constexpr int64_t kSampleDivisor = 128;  // the sample is 1/128 of the blocks, or sample_rows rows if that is more

void drop_overtaken(const QueryBound& bound, QueryState& state) {
  const float theta = bound.theta(state.tau());
  std::vector<Deferred>& deferred = state.deferred();
  deferred.erase(std::remove_if(deferred.begin(), deferred.end(), [&](const Deferred& d) { return d.value < theta; }), deferred.end());
}

// So many deferred rows are refined before the others, to raise tau. Sorting all of them by value hardly saved more.
constexpr int64_t kLargestFirst = 64;

// Moves the rows with the largest values of the row test to the front, NaN first.
void largest_first(std::vector<Deferred>& deferred, int64_t count) {
  for (Deferred& each : deferred) {
    if (std::isnan(each.value)) each.value = kInfinityF32;
  }
  std::nth_element(deferred.begin(), deferred.begin() + count, deferred.end(),
                   [](const Deferred& a, const Deferred& b) { return a.value > b.value; });
}

// One search of one shard. If the prefilter keeps too many rows for a query, the query switches to the codes between two rounds
// of blocks. Apart from the trial, which only counts, every block is scanned once per query.
class PrefilteredShard {
 public:
  PrefilteredShard(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& codes_queries,
                   const double* queries, const States& states)
      : context_(context),
        policy_(context.options.prefilter),
        pool_(context.pool),
        shard_(shard),
        mean_(mean),
        codes_queries_(codes_queries),
        queries_(queries),
        states_(states) {}

  void run() {
    std::vector<int64_t> sample, others;
    divide_blocks(sample, others);
    scan_codes_of(sample, codes_queries_, states_);
    if (others.empty()) return;
    use_prefilter();
    run_trial({sample.begin(), sample.begin() + static_cast<int64_t>((sample.size() + 3) / 4)});
    scan_in_rounds(others, sample.size());
    pool_.run(static_cast<int64_t>(prefiltered_.size()), [&](int64_t i) { refine_deferred(i); });
  }

 private:
  // Divides the blocks that have rows that pass the filter. Evenly spread blocks are the sample, or all of them if the sample would be more
  // than a quarter. The sample and the allowance count only rows that pass, as the passes scan no others.
  void divide_blocks(std::vector<int64_t>& sample, std::vector<int64_t>& others) {
    std::vector<int64_t> blocks;
    for (int64_t b = 0; b < shard_.codes->blocks(); ++b) {
      const CodesBlock rows = shard_.codes->block(b);
      if (context_.filter.has_any(shard_.first_row + rows.first_row, rows.rows)) blocks.push_back(b);
    }
    if (blocks.empty()) return;
    passing_rows_ = static_cast<double>(context_.filter.count(shard_.first_row, shard_.codes->rows()));
    const auto all = static_cast<int64_t>(blocks.size());
    const double needed = std::ceil(static_cast<double>(policy_.sample_rows) * static_cast<double>(all) / passing_rows_);
    const int64_t sampled = std::max({static_cast<int64_t>(std::min(needed, static_cast<double>(all))), all / kSampleDivisor, int64_t{1}});
    const int64_t stride = sampled * 4 > all ? 1 : all / sampled;
    for (int64_t i = 0; i < all; ++i) (i % stride == 0 ? sample : others).push_back(blocks[i]);
  }

  // Lets all queries use the prefilter.
  void use_prefilter() {
    const PrefilterFile& prefilter = *shard_.prefilter;
    packer_ = std::make_unique<PrefilterPacker>(mean_, prefilter.basis().data(), prefilter.components(), prefilter.orthogonality_error(),
                                                prefilter.sign_seed(), context_.kernels);
    prefiltered_.resize(states_.size());
    for (size_t q = 0; q < states_.size(); ++q) prefiltered_[q] = static_cast<int64_t>(q);
    pack();
    deferrable_rows_ = policy_.refined_share * passing_rows_;
  }

  // Each round has twice the blocks of the round before. Between two rounds, queries that have deferred too many rows switch to the codes.
  void scan_in_rounds(const std::vector<int64_t>& blocks, size_t first_round) {
    // Within a round a query may defer twice as many rows, and 1024 in a small shard; further kept rows are refined at once, so that the
    // memory for deferred rows is bounded.
    const int64_t max_deferred = 1024 + static_cast<int64_t>(2 * deferrable_rows(static_cast<int64_t>(states_.size())));
    size_t next = 0;
    for (size_t round = first_round; next < blocks.size(); round *= 2) {
      const size_t end = blocks.size() - next < 2 * round ? blocks.size() : next + round;
      scan_round({blocks.begin() + static_cast<int64_t>(next), blocks.begin() + static_cast<int64_t>(end)}, max_deferred);
      next = end;
      if (next < blocks.size() && !prefiltered_.empty()) switch_to_codes(over_allowance());
    }
  }

  void scan_codes_of(const std::vector<int64_t>& blocks, const PackedQueries& packed, const States& states) {
    CodesScan scan(context_, shard_, mean_, packed, states);
    pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.block(blocks[i]); });
  }

  void scan_round(const std::vector<int64_t>& blocks, int64_t max_deferred) {
    if (!prefiltered_.empty()) {
      PrefilterScan scan(context_, shard_, *prefilter_queries_, codes_queries_, prefiltered_, max_deferred, prefiltered_states_);
      pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.block(blocks[i]); });
      scan.finish();
    }
    if (switched_queries_) scan_codes_of(blocks, *switched_queries_, switched_states_);
  }

  // Packs the queries in prefiltered_.
  void pack() {
    prefiltered_states_.clear();
    for (const int64_t q : prefiltered_) prefiltered_states_.push_back(states_[q]);
    const bool all = prefiltered_.size() == states_.size();
    const std::vector<double> some = all ? std::vector<double>() : gather_queries(queries_, mean_.dimension, prefiltered_);
    prefilter_queries_ = std::make_unique<PackedQueries>(*packer_, all ? queries_ : some.data(), static_cast<int64_t>(prefiltered_.size()),
                                                         context_.choice, pool_);
  }

  // Counts how many rows of some sampled blocks the prefilter keeps. The scores of the sample have raised tau before.
  void run_trial(const std::vector<int64_t>& blocks) {
    std::vector<std::atomic<int64_t>> kept(prefiltered_.size());
    for (auto& each : kept) each = 0;
    PrefilterScan scan(context_, shard_, *prefilter_queries_, codes_queries_, prefiltered_, 0, prefiltered_states_);
    pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t i) { scan.trial(blocks[i], kept); });
    int64_t seen = 0;
    for (const int64_t block : blocks) {
      const CodesBlock rows = shard_.codes->block(block);
      seen += context_.filter.count(shard_.first_row + rows.first_row, rows.rows);
    }
    const double max_kept = policy_.trial_share * static_cast<double>(seen);
    std::vector<char> switches(kept.size());
    for (size_t i = 0; i < kept.size(); ++i) switches[i] = static_cast<double>(kept[i]) > max_kept;
    switch_to_codes(switches);
  }

  // How many rows a query may defer if `switching` queries use the codes. With fewer than 16 queries, memory limits the speed of a pass
  // over the codes, so each query bears a larger part of its time.
  double deferrable_rows(int64_t switching) const {
    return deferrable_rows_ * std::max(1.0, 16.0 / static_cast<double>(std::max<int64_t>(switching, 1)));
  }

  // Marks the queries that have deferred more rows than their allowance. Rows that tau has overtaken since do not count; rows that were
  // refined at once, because no more could be deferred, do.
  std::vector<char> over_allowance() {
    std::vector<char> switches(prefiltered_.size(), 0);
    std::vector<int64_t> deferred(prefiltered_.size(), 0);
    pool_.run(static_cast<int64_t>(prefiltered_.size()), [&](int64_t i) {
      QueryState& state = *prefiltered_states_[i];
      const auto all = [&] { return static_cast<int64_t>(state.deferred().size()) + state.beyond_limit(); };
      if (state.needs_full_scan() || static_cast<double>(all()) <= deferrable_rows_) return;
      drop_overtaken(prefilter_queries_->row_order.bounds[i], state);
      deferred[i] = all();
      switches[i] = static_cast<double>(deferred[i]) > deferrable_rows_;
    });
    // If fewer queries switch, the allowance is larger, so even fewer do.
    for (int64_t before = 0, count = std::count(switches.begin(), switches.end(), 1); count != before;) {
      const double allowance = deferrable_rows(count + static_cast<int64_t>(switched_.size()));
      for (size_t i = 0; i < switches.size(); ++i) switches[i] &= static_cast<double>(deferred[i]) > allowance;
      before = count;
      count = std::count(switches.begin(), switches.end(), 1);
    }
    return switches;
  }

  // Refines the deferred rows of the marked queries, and lets these queries use the codes from now on.
  void switch_to_codes(const std::vector<char>& switches) {
    if (std::find(switches.begin(), switches.end(), 1) == switches.end()) return;
    pool_.run(static_cast<int64_t>(switches.size()), [&](int64_t i) {
      if (switches[i] != 0) refine_deferred(i);
    });
    std::vector<int64_t> staying;
    for (size_t i = 0; i < switches.size(); ++i) {
      if (switches[i] == 0) {
        staying.push_back(prefiltered_[i]);
      } else {
        switched_.push_back(prefiltered_[i]);
        switched_states_.push_back(prefiltered_states_[i]);
      }
    }
    prefiltered_ = std::move(staying);
    if (!prefiltered_.empty()) pack();
    const std::vector<double> some = gather_queries(queries_, mean_.dimension, switched_);
    switched_queries_ =
        std::make_unique<PackedQueries>(CodesPacker(mean_), some.data(), static_cast<int64_t>(switched_.size()), context_.choice, pool_);
  }

  // The rows with the largest values first, because they raise tau most; then the others, nearly as they lie in memory.
  void refine_deferred(int64_t i) {
    context_.check_cancelled();
    QueryState& state = *prefiltered_states_[i];
    if (state.needs_full_scan()) return;
    const QueryBound& bound = prefilter_queries_->row_order.bounds[i];
    drop_overtaken(bound, state);
    std::vector<Deferred> deferred = state.take_deferred();
    const auto largest = std::min<int64_t>(kLargestFirst, static_cast<int64_t>(deferred.size()));
    largest_first(deferred, largest);
    ScatteredRows scattered(shard_, mean_, codes_queries_);
    std::vector<int64_t> rows;
    int64_t refined = 0;
    const auto refine = [&](int64_t from, int64_t to) {
      const float theta = bound.theta(state.tau());
      rows.clear();
      for (int64_t d = from; d < to; ++d) {
        if (!(deferred[d].value < theta)) rows.push_back(deferred[d].row);
      }
      scattered.scan(rows, prefiltered_[i], state);
      refined += static_cast<int64_t>(rows.size());
    };
    refine(0, largest);
    refine(largest, static_cast<int64_t>(deferred.size()));
    state.count_refined(refined);
  }

  const SearchContext& context_;
  const PrefilterPolicy& policy_;
  ThreadPool& pool_;
  const Shard& shard_;
  const PackMean& mean_;
  const PackedQueries& codes_queries_;  // all queries, packed for the codes
  const double* queries_;
  const States& states_;
  double passing_rows_ = 0;                           // rows of the shard that pass the filter
  double deferrable_rows_ = 0;                        // rows that a query may defer if 16 or more switch to the codes
  std::unique_ptr<PrefilterPacker> packer_;           // null if the shard is too small for its prefilter
  std::vector<int64_t> prefiltered_, switched_;       // numbers of the queries that use the prefilter, or switched to the codes
  States prefiltered_states_, switched_states_;       // states of prefiltered_ and of switched_
  std::unique_ptr<PackedQueries> prefilter_queries_;  // prefiltered_, packed for the prefilter
  std::unique_ptr<PackedQueries> switched_queries_;   // switched_, packed for the codes; null if switched_ is empty
};

}  // namespace

void scan_prefiltered(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& codes_queries,
                      const double* queries, const States& states) {
  PrefilteredShard(context, shard, mean, codes_queries, queries, states).run();
}

}  // namespace trawl
