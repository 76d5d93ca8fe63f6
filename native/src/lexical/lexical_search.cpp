// Exact top-k search with MaxScore (H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995), one window of
// rows after another. A list is the postings of one query term; its bound is an upper bound of the term's score in the window.
// The lists with the smallest bounds are non-essential as long as the sum of their bounds cannot bring a row into the top-k: a
// row that only they contain need not be found. The search reads the other, essential lists, and non-essential lists that are
// short. It looks up the rows that it finds there, the candidates, in the lists that it did not read, one list at a time. It
// drops a candidate as soon as the bounds show that it cannot enter the top-k. If a filter lets fewer rows of a window pass than the
// essential lists have postings there, these rows are the candidates, and no list is read as a whole.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "base/float_environment.hpp"
#include "base/row_bits.hpp"
#include "lexical/lexical_shards.hpp"
#include "lexical/posting_cursor.hpp"
#include "lexical/search_tasks.hpp"
#include "lexical/window_sums.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {
namespace {

// The first window is small: the search soon has a k-th score, which later rows must exceed.
constexpr uint32_t kFirstWindowRows = 1 << 11;
// Looking up a row takes about as long as reading this many postings.
constexpr double kPostingsPerLookup = 3;
// An estimate of look-ups is multiplied by this in each window without look-ups.
constexpr double kEstimateDecay = 0.7;

// A query with the numbers that are the same for all shards.
struct WeightedQuery {
  struct Term {
    float weight;
    size_t first_posting;  // its postings in each shard, in `postings`
  };
  std::vector<Term> terms;  // the terms that the index has, in the order of their first appearance
  std::vector<TermPostings> postings;
  // Whether every sum of scores is exact in float64. Then the order of addition does not matter.
  bool sums_are_exact = true;
};

// All float32 scores are multiples of the smallest score's ulp (unit in the last place). Sums below 2^53 ulps are exact.
bool sums_are_exact(const std::vector<WeightedQuery::Term>& terms, float least_inverse) {
  double largest_sum = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const WeightedQuery::Term& term : terms) {
    largest_sum += term.weight;
    if (term.weight == 0) continue;
    const float least = term_score(term.weight, 1, least_inverse);
    if (!(least > 0)) return false;
    smallest = std::min(smallest, static_cast<double>(least));
  }
  if (largest_sum == 0) return true;
  const double last_place = std::ldexp(1.0, std::ilogb(smallest) - 23);
  return largest_sum / last_place < 9007199254740992.0;
}

WeightedQuery weigh(const LexicalIndex& index, const BagOfWords& query, const Bm25& bm25, const InverseNorms& inverse) {
  WeightedQuery weighted;
  for (const WeightedTerm& term : query) {
    if (!(term.boost >= 0) || !std::isfinite(term.boost)) {
      throw Error(ErrorCode::kBadArgument, "a boost must be a number of at least 0, but is " + std::to_string(term.boost));
    }
    const size_t first = weighted.postings.size();
    weighted.postings.resize(first + index.shards().size());
    const uint64_t frequency = index.document_frequency(term.term, &weighted.postings[first]);
    if (frequency == 0) {
      weighted.postings.resize(first);
      continue;
    }
    const float idf = inverse_document_frequency(frequency, index.counts().documents);
    const float weight = term_weight(bm25, term.boost, idf);
    if (!std::isfinite(weight))
      throw Error(ErrorCode::kBadArgument, "the boosts of a query are too large: a term's weight overflows float32");
    weighted.terms.push_back({weight, first});
  }
  weighted.sums_are_exact = sums_are_exact(weighted.terms, inverse[index.longest_code()]);
  return weighted;
}

// The memory of a search. Each window reuses it.
struct Accumulators {
  WindowSums window;  // no row has a sum between windows
  Candidates candidates;
  DecodedBlocks blocks;
  bool in_window = false;  // while a window has sums: the next search clears what a search that threw has left

  void reset() {
    if (!in_window) return;
    std::fill(window.sums.begin(), window.sums.end(), kNoSum);
    std::fill(window.touched.begin(), window.touched.end(), 0);
    in_window = false;
  }
};

// One query over the rows [begin, end) of one shard.
class ShardSearch {
 public:
  ShardSearch(const LexicalIndex::Shard& shard, size_t shard_number, const WeightedQuery& query, const InverseNorms& inverse,
              const LexicalOptions& options, Accumulators& accumulators, BestRows& best, LexicalStats& stats, int64_t k)
      : shard_(shard),
        shard_number_(shard_number),
        query_(query),
        inverse_(inverse),
        options_(options),
        accumulators_(accumulators),
        best_(best),
        stats_(stats),
        factor_(sum_factor(query.terms.size())),
        k_(k) {
    terms_.reserve(query.terms.size());
    for (const WeightedQuery::Term& term : query.terms) {
      const TermPostings& postings = query.postings[term.first_posting + shard_number];
      if (postings.count == 0) continue;
      terms_.push_back({std::make_unique<PostingCursor>(*shard.file, postings, term.weight, inverse, accumulators.blocks)});
      stats_.postings += postings.count;
    }
  }

  void run(uint32_t begin, uint32_t end) {
    if (terms_.empty()) return;
    if (options_.prune) floor_ = floor_of_short_lists();
    if (options_.filter_bits != nullptr) {
      for (Term& term : terms_) {
        whole_lists_.push_back({&term, term.cursor->bound(), 0});
        all_postings_ += term.cursor->count();
      }
      sort_by_bound(whole_lists_);
    }
    uint32_t rows = kFirstWindowRows;
    for (uint32_t window = begin; window < end; rows = std::min(2 * rows, kWindowRows)) {
      check_cancelled(options_.cancel);
      const uint32_t window_end = std::min<uint64_t>(end, uint64_t{window} + rows);
      // best_ updates the k-th best score from time to time; here it is made current before it becomes the floor.
      best_.raise_floor();
      raise_floor();
      if (!search_rows_of_filter(window, window_end)) search_window(window, window_end);
      window = window_end;
    }
    for (const Term& term : terms_) stats_.postings_decoded += term.cursor->decoded();
  }

 private:
  struct Term {
    std::unique_ptr<PostingCursor> cursor;
    // In the last window that looked up candidates in this list: their number, for each posting of the essential lists. At first
    // as if every row of an essential list were looked up.
    double lookups_per_posting = 1;
  };
  // A term's list in a window.
  struct List {
    Term* term;
    double bound;
    double bound_with_before;  // sum of the bounds of this list and the lists before it, times the factor
  };

  // Whether a row of this shard whose score is at most `bound` cannot enter the top-k.
  bool cannot_enter(double bound) const { return static_cast<float>(bound) <= floor_; }

  // Rows come in rising order, and of equal scores the lower row is better. So once k rows are kept, a later row enters only with
  // a larger score than the worst of them.
  void raise_floor() {
    if (options_.prune && best_.is_full()) floor_ = std::max(floor_, best_.floor());
  }

  bool is_allowed(int64_t row) const { return options_.filter_bits == nullptr || (options_.filter_bits[row >> 6] >> (row & 63) & 1) != 0; }

  // A score that k rows of this shard exceed, found before any row is searched: k rows of one list have larger scores for its
  // term alone, and sums at least as large. Negative if no short list has k rows.
  float floor_of_short_lists() {
    float floor = -1;
    std::vector<float> scores;
    for (const Term& term : terms_) {
      PostingCursor* const cursor = term.cursor.get();
      if (cursor->count() < k_) continue;
      const DecodedBlock* const all = cursor->all_postings();
      if (all == nullptr) continue;
      scores.clear();
      for (uint32_t i = 0; i < cursor->count(); i++) {
        if (is_allowed(shard_.first_row + all->rows[i])) scores.push_back(all->scores[i]);
      }
      if (scores.size() < static_cast<size_t>(k_)) continue;
      std::nth_element(scores.begin(), scores.begin() + (k_ - 1), scores.end(), std::greater<>());
      // The next smaller score, because a row with the k-th best score itself may enter.
      floor = std::max(floor, std::nextafter(scores[k_ - 1], -1.0f));
    }
    return floor;
  }

  // Searches a window by looking up the rows that pass the filter. Returns false, and searches nothing, if reading the lists takes
  // less time, without a filter, and without pruning.
  bool search_rows_of_filter(uint32_t begin, uint32_t end) {
    if (options_.filter_bits == nullptr || !options_.prune) return false;
    const int64_t first = shard_.first_row + begin, last = shard_.first_row + end;
    size_t passing = 0;
    for (int64_t row = first; row < last; row += 64) passing += __builtin_popcountll(bits_of(options_.filter_bits, row, last));
    if (passing == 0) return true;
    // The window has about its share of the shard's postings.
    const double share = static_cast<double>(end - begin) / static_cast<double>(shard_.file->rows());
    const double lookups = kPostingsPerLookup * static_cast<double>(passing) * static_cast<double>(whole_lists_.size());
    if (lookups > share * static_cast<double>(all_postings_)) return false;
    // The bounds of the whole lists need no look at the blocks of the window.
    const size_t non_essential = bound_with_before(whole_lists_);
    if (non_essential == whole_lists_.size()) return true;
    uint64_t postings = 0;
    for (size_t i = non_essential; i < whole_lists_.size(); i++) postings += whole_lists_[i].term->cursor->count();
    if (lookups > share * static_cast<double>(postings)) return false;
    Candidates& candidates = accumulators_.candidates;
    candidates.count = 0;
    for (int64_t row = first; row < last; row += 64) {
      for_each_bit(bits_of(options_.filter_bits, row, last), [&](int bit) {
        candidates.rows[candidates.count++] = begin + static_cast<uint32_t>(row - first) + static_cast<uint32_t>(bit);
      });
    }
    std::fill_n(candidates.sums.begin(), candidates.count, kNoSum);
    complete_candidates(whole_lists_, whole_lists_.size(), share * static_cast<double>(postings));
    return true;
  }

  static void sort_by_bound(std::vector<List>& lists) {
    std::sort(lists.begin(), lists.end(), [](const List& a, const List& b) { return a.bound < b.bound; });
  }

  // Sums the bounds of the sorted lists. Returns the number of non-essential lists.
  size_t bound_with_before(std::vector<List>& lists) const {
    double sum = 0;
    size_t non_essential = 0;
    for (List& list : lists) {
      sum += list.bound;
      list.bound_with_before = sum * factor_;
      if (cannot_enter(list.bound_with_before)) non_essential++;
    }
    return non_essential;
  }

  void search_window(uint32_t begin, uint32_t end) {
    lists_.clear();
    for (Term& term : terms_) {
      const float bound = term.cursor->bound_in(begin, end);
      if (bound >= 0) lists_.push_back({&term, bound, 0});
    }
    sort_by_bound(lists_);
    size_t non_essential = bound_with_before(lists_);
    if (non_essential == lists_.size()) return;
    double essential_postings = 0;  // in the whole shard; the window has about its share of them
    for (size_t i = non_essential; i < lists_.size(); i++) essential_postings += lists_[i].term->cursor->count();
    const double window_share = static_cast<double>(end - begin) / static_cast<double>(shard_.file->rows());
    // Also reads a non-essential list if that takes less time than looking up the candidates in it. The estimate of the look-ups
    // falls while the list is read, so a later window looks up and measures again.
    while (non_essential > 0) {
      Term& term = *lists_[non_essential - 1].term;
      if (term.cursor->count() > kPostingsPerLookup * term.lookups_per_posting * essential_postings) break;
      term.lookups_per_posting *= kEstimateDecay;
      non_essential--;
    }
    accumulators_.in_window = true;
    for (size_t i = non_essential; i < lists_.size(); i++) accumulate(*lists_[i].term->cursor, begin, end);
    collect(accumulators_.window, begin, end - begin, sum_too_small(lists_, non_essential), accumulators_.candidates);
    accumulators_.in_window = false;
    keep_allowed(accumulators_.candidates);
    complete_candidates(lists_, non_essential, essential_postings * window_share);
  }

  void keep_allowed(Candidates& candidates) const {
    if (options_.filter_bits == nullptr) return;
    size_t kept = 0;
    for (size_t i = 0; i < candidates.count; i++) {
      candidates.rows[kept] = candidates.rows[i];
      candidates.sums[kept] = candidates.sums[i];
      kept += is_allowed(shard_.first_row + candidates.rows[i]) ? 1 : 0;
    }
    candidates.count = kept;
  }

  void accumulate(PostingCursor& cursor, uint32_t begin, uint32_t end) {
    double* const sums = accumulators_.window.sums.data();
    uint8_t* const touched = accumulators_.window.touched.data();
    cursor.for_each_in(begin, end, [&](const uint32_t* rows, const float* scores, uint32_t count) {
      for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = rows[i] - begin;
        sums[at] += scores[i];
        touched[at / kGroupRows] = 1;
      }
    });
  }

  // The largest sum over the lists from `non_essential` on with which no row can enter the top-k: whatever the other lists add, and in
  // whatever order, the whole sum stays below floor_ * (1 + 2^-25) and so rounds to floor_ or less. kNoSum if every row can enter.
  double sum_too_small(const std::vector<List>& lists, size_t non_essential) const {
    const double sum = floor_ - (non_essential == 0 ? 0 : lists[non_essential - 1].bound_with_before);
    return sum >= 0 ? sum : kNoSum;
  }

  // Looks up the candidates in the first `unread` lists, one list at a time, the largest bound first. Drops the candidates that
  // cannot enter the top-k or are in no list, and offers the others. `essential_postings`: how many postings the essential lists
  // have in the window.
  void complete_candidates(const std::vector<List>& lists, size_t unread, double essential_postings) {
    Candidates& candidates = accumulators_.candidates;
    for (size_t i = unread; i > 0; i--) {
      Term& term = *lists[i - 1].term;
      term.lookups_per_posting = static_cast<double>(candidates.count) / essential_postings;
      if (candidates.count == 0) continue;
      term.cursor->add_scores(candidates.rows.data(), candidates.count, candidates.sums.data());
      const double too_small = sum_too_small(lists, i - 1);
      // A candidate without a sum may be in the lists that follow.
      if (i == 1 || !is_no_sum(too_small)) candidates.keep_above(too_small);
    }
    for (size_t i = 0; i < candidates.count; i++) offer(candidates.rows[i], candidates.sums[i]);
  }

  void offer(uint32_t row, double sum) {
    if (cannot_enter(sum * factor_)) return;
    const auto score = static_cast<float>(query_.sums_are_exact ? sum : canonical_sum(row));
    // A row with score 0 also matches: the weight of its terms is 0, or its score rounds to 0.
    best_.offer(score, shard_.first_row + row);
    raise_floor();
  }

  // Adds the scores of a row in the order of the query's terms. Rarely needed: only if the largest sum that a row could have is
  // more than 2^29 times the smallest score of a term (sums_are_exact).
  double canonical_sum(uint32_t row) const {
    double sum = 0;
    for (const WeightedQuery::Term& term : query_.terms) {
      const TermPostings& postings = query_.postings[term.first_posting + shard_number_];
      if (postings.count == 0) continue;
      sum += PostingCursor(*shard_.file, postings, term.weight, inverse_, accumulators_.blocks).score_of(row);
    }
    return sum;
  }

  const LexicalIndex::Shard& shard_;
  const size_t shard_number_;
  const WeightedQuery& query_;
  const InverseNorms& inverse_;
  const LexicalOptions& options_;
  Accumulators& accumulators_;
  BestRows& best_;
  LexicalStats& stats_;
  const double factor_;
  const int64_t k_;
  float floor_ = -1;  // a row with this score or less cannot enter
  std::vector<Term> terms_;
  std::vector<List> lists_;        // of a window, the smallest bound first
  std::vector<List> whole_lists_;  // all, the smallest bound first; empty without a filter
  uint64_t all_postings_ = 0;      // of whole_lists_
};

}  // namespace

LexicalResult lexical_search(const LexicalIndex& index, const std::vector<BagOfWords>& queries, const LexicalOptions& options,
                             ThreadPool& pool) {
  check_options(options);
  LexicalResult result = empty_result(queries.size(), options.k, index.rows());
  const int64_t k = std::max<int64_t>(1, std::min(options.k, index.rows()));
  if (index.counts().documents == 0) return result;

  const Bm25 bm25 = {options.k1, options.b, options.factor_k1_plus_1};
  const InverseNorms inverse = inverse_norms(bm25, index.counts());
  std::vector<WeightedQuery> weighted(queries.size());
  const std::vector<SearchTask> tasks = cut_into_tasks(index.rows(), queries.size(), pool.threads());
  // If several tasks search one query, it is weighed before they start, because they run at the same time and share its weights.
  // Otherwise each task weighs its own query, so that this work runs in parallel.
  const bool weigh_first = tasks.size() > queries.size();
  if (weigh_first) {
    for (size_t i = 0; i < queries.size(); i++) weighted[i] = weigh(index, queries[i], bm25, inverse);
  }
  std::vector<TaskResult> found(tasks.size());
  pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const FloatEnvironment environment;
    const SearchTask& task = tasks[i];
    if (!weigh_first) weighted[task.query] = weigh(index, queries[task.query], bm25, inverse);
    static thread_local Accumulators accumulators;
    accumulators.reset();
    BestRows best(k, task.begin);
    for (size_t number = 0; number < index.shards().size(); number++) {
      const LexicalIndex::Shard& shard = index.shards()[number];
      const int64_t shard_end = shard.first_row + shard.file->rows();
      const int64_t begin = std::max(task.begin, shard.first_row);
      const int64_t end = std::min(task.end, shard_end);
      if (begin >= end) continue;
      ShardSearch(shard, number, weighted[task.query], inverse, options, accumulators, best, found[i].stats, k)
          .run(static_cast<uint32_t>(begin - shard.first_row), static_cast<uint32_t>(end - shard.first_row));
    }
    found[i].best = std::move(best).sorted();
  });

  merge_tasks(tasks, found, k, result);
  return result;
}

}  // namespace trawl::lexical
