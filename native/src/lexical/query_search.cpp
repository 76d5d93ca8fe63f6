#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/float_environment.hpp"
#include "lexical/query_plan.hpp"
#include "lexical/query_rewrite.hpp"
#include "lexical/query_tree.hpp"
#include "lexical/query_window.hpp"
#include "lexical/search_tasks.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_query.hpp"

namespace trawl::lexical {
namespace {

void check_fields(const std::vector<const LexicalIndex*>& fields) {
  if (fields.empty()) throw Error(ErrorCode::kBadArgument, "a search needs at least one field");
  for (const LexicalIndex* field : fields) {
    if (field->rows() != fields[0]->rows()) {
      throw Error(ErrorCode::kBadArgument, "the fields have " + std::to_string(fields[0]->rows()) + " and " +
                                               std::to_string(field->rows()) + " rows; all fields must have the same rows");
    }
  }
}

struct FlatQuery {
  uint32_t field = 0;
  BagOfWords bag;
};

// Converts a query to a bag of words of one field if it is a term, or a bool of only should clauses that are terms, boosted or
// not. Returns nothing for other queries.
std::optional<FlatQuery> flatten(const QueryTree& tree, NodeId root) {
  float boost = 1;
  while (tree.type(root) == NodeType::kBoost) {
    boost = tree.boost(root) * boost;
    root = tree.child(root);
  }
  std::vector<NodeId> terms = {root};
  if (tree.type(root) == NodeType::kBool) {
    const Clauses& clauses = tree.clauses(root);
    if (!clauses.is_pure_disjunction()) return {};
    terms = clauses.should;
  }
  FlatQuery flat;
  for (NodeId term : terms) {
    float term_boost = boost;
    for (; tree.type(term) == NodeType::kBoost; term = tree.child(term)) term_boost = tree.boost(term) * term_boost;
    if (tree.type(term) != NodeType::kTerm) return {};
    if (!flat.bag.empty() && tree.field(term) != flat.field) return {};
    flat.field = tree.field(term);
    flat.bag.push_back({tree.term(term), term_boost});
  }
  return flat;
}

struct PreparedQuery {
  std::unique_ptr<QueryTree> tree;
  std::optional<FlatQuery> flat;
  QueryPlan plan;  // unused if the query is a bag of words
};

// Puts the rows of [begin, end) that pass the filter into `allowed`. Returns false if there are none.
bool allow_rows(const LexicalOptions& options, int64_t begin, int64_t end, RowSet& allowed) {
  uint64_t any = 0;
  for (size_t word = 0; word < allowed.size(); word++) {
    const int64_t first = begin + static_cast<int64_t>(word) * 64;
    uint64_t bits = 0;
    if (first < end) bits = options.filter_bits != nullptr ? bits_of(options.filter_bits, first, end) : low_bits(end - first);
    allowed[word] = bits;
    any |= bits;
  }
  return any != 0;
}

// Searches the rows of a task for one query. `matches` is the count of all tasks of the query.
class QuerySearch {
 public:
  QuerySearch(const QueryPlan& plan, const std::vector<ScoredField>& fields, const QueryOptions& options, BestRows& best,
              std::atomic<int64_t>& matches, LexicalStats& stats)
      : plan_(plan), fields_(fields), options_(options), best_(best), matches_(matches), stats_(stats) {}

  // The fields may have different shards, so the search runs in ranges that end wherever a shard of any field ends.
  void run(int64_t begin, int64_t end) {
    if (plan_.nodes.empty()) return;
    std::vector<size_t> shards(fields_.size(), 0);
    while (begin < end) {
      int64_t part_end = end;
      std::vector<const LexicalIndex::Shard*> current;
      for (size_t f = 0; f < fields_.size(); f++) {
        const auto& all = fields_[f].index->shards();
        while (begin >= all[shards[f]].first_row + all[shards[f]].file->rows()) shards[f]++;
        current.push_back(&all[shards[f]]);
        part_end = std::min(part_end, current.back()->first_row + current.back()->file->rows());
      }
      search_part(current, begin, part_end);
      begin = part_end;
    }
  }

 private:
  void search_part(const std::vector<const LexicalIndex::Shard*>& shards, int64_t begin, int64_t end) {
    QueryWindow window(plan_, fields_, shards, memory_);
    for (int64_t from = begin; from < end; from += kQueryWindowRows) {
      check_cancelled(options_.cancel);
      best_.raise_floor();
      const int64_t to = std::min<int64_t>(end, from + kQueryWindowRows);
      if (!allow_rows(options_, from, to, allowed_)) continue;
      const float bound = window.move_to(from, to);
      // Windows are searched in full until enough rows are counted. All tasks together count too few rows only if no task has
      // skipped a window.
      const bool counts = options_.count > 0 && matches_.load(std::memory_order_relaxed) <= options_.count;
      // Rows come in rising order, so a row with the same score as the worst kept row ranks after it.
      const bool prunes = options_.prune && !counts && best_.is_full();
      const float floor = std::max(prunes ? best_.floor() : kNoFloor, std::nextafter(options_.min_score, kNoFloor));
      if (bound < 0 || bound <= floor) continue;
      window.evaluate(allowed_, floor, *matched_);
      int64_t matches = 0;
      for (size_t word = 0; word < matched_->rows.size(); word++) {
        for_each_bit(matched_->rows[word], [&](size_t bit) {
          const size_t at = word * 64 + bit;
          if (matched_->scores[at] < options_.min_score) return;
          matches++;
          best_.offer(matched_->scores[at], from + static_cast<int64_t>(at));
        });
      }
      if (counts) matches_.fetch_add(matches, std::memory_order_relaxed);
    }
    stats_.postings += window.postings();
    stats_.postings_decoded += window.decoded();
  }

  const QueryPlan& plan_;
  const std::vector<ScoredField>& fields_;
  const QueryOptions& options_;
  BestRows& best_;
  std::atomic<int64_t>& matches_;
  LexicalStats& stats_;
  QueryMemory memory_;
  RowSet allowed_;
  std::unique_ptr<MatchedRows> matched_ = std::make_unique<MatchedRows>();
};

void search_flat(const std::vector<const LexicalIndex*>& fields, std::vector<PreparedQuery>& prepared, const LexicalOptions& options,
                 ThreadPool& pool, LexicalResult& result) {
  for (uint32_t field = 0; field < fields.size(); field++) {
    std::vector<BagOfWords> bags;
    std::vector<size_t> places;
    for (size_t i = 0; i < prepared.size(); i++) {
      std::optional<FlatQuery>& flat = prepared[i].flat;
      if (!flat || flat->field != field) continue;
      bags.push_back(std::move(flat->bag));
      places.push_back(i);
    }
    if (bags.empty()) continue;
    const LexicalResult found = lexical_search(*fields[field], bags, options, pool);
    for (size_t i = 0; i < places.size(); i++) {
      result.counts[places[i]] = found.counts[i];
      result.stats[places[i]] = found.stats[i];
      std::copy_n(found.rows.begin() + i * result.k, result.k, result.rows.begin() + places[i] * result.k);
      std::copy_n(found.scores.begin() + i * result.k, result.k, result.scores.begin() + places[i] * result.k);
    }
  }
}

}  // namespace

LexicalResult lexical_search(const std::vector<const LexicalIndex*>& fields, const std::vector<Query>& queries, const QueryOptions& options,
                             ThreadPool& pool) {
  check_options(options);
  if (options.count < 0) throw Error(ErrorCode::kBadArgument, "count must be at least 0, but is " + std::to_string(options.count));
  if (std::isnan(options.min_score)) throw Error(ErrorCode::kBadArgument, "min_score is not a number");
  check_fields(fields);
  const int64_t rows = fields[0]->rows();
  LexicalResult result = empty_result(queries.size(), options.k, rows);
  const int64_t k = std::max<int64_t>(1, std::min(options.k, rows));
  const Bm25 bm25 = {options.k1, options.b, options.factor_k1_plus_1};
  std::vector<ScoredField> scored;
  for (const LexicalIndex* field : fields) {
    scored.push_back({field, {}});
    const LexicalCounts counts = field->counts();
    if (counts.documents > 0) scored.back().inverse = inverse_norms(bm25, counts);
  }

  // Only the search of trees counts rows and leaves out those with a low score.
  const bool may_be_flat = options.count == 0 && options.min_score == kNoFloor;
  std::vector<PreparedQuery> prepared(queries.size());
  pool.run(static_cast<int64_t>(queries.size()), [&](int64_t i) {
    const FloatEnvironment environment;
    check_cancelled(options.cancel);
    PreparedQuery& query = prepared[i];
    query.tree = std::make_unique<QueryTree>(queries[i], fields.size());
    const NodeId root = rewrite_query(*query.tree);
    if (may_be_flat) query.flat = flatten(*query.tree, root);
    if (!query.flat) query.plan = plan_query(*query.tree, root, scored, bm25);
  });
  search_flat(fields, prepared, options, pool, result);

  std::vector<size_t> composed;
  for (size_t i = 0; i < prepared.size(); i++) {
    if (!prepared[i].flat) composed.push_back(i);
  }
  std::vector<SearchTask> tasks = cut_into_tasks(rows, composed.size(), pool.threads());
  for (SearchTask& task : tasks) task.query = composed[task.query];
  std::vector<TaskResult> found(tasks.size());
  std::vector<std::atomic<int64_t>> matches(queries.size());
  pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const FloatEnvironment environment;
    BestRows best(k, tasks[i].begin);
    const size_t query = tasks[i].query;
    QuerySearch(prepared[query].plan, scored, options, best, matches[query], found[i].stats).run(tasks[i].begin, tasks[i].end);
    found[i].best = std::move(best).sorted();
  });
  merge_tasks(tasks, found, k, result);
  if (options.count > 0) {
    for (const auto& total : matches) result.totals.push_back(std::min(total.load(), options.count + 1));
  }
  return result;
}

}  // namespace trawl::lexical
