#include "lexical/query_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "trawl/error.hpp"

namespace trawl::lexical {
namespace {

constexpr int kAnyPlace = 1000;       // last place of a node whose scores are all 0
constexpr int kUnknownPlace = -1000;  // last place of a node whose smallest score is unknown

int last_place_of(double least, double most) {
  if (most == 0) return kAnyPlace;
  return least > 0 ? std::ilogb(least) - 23 : kUnknownPlace;
}

// A query that matches no row of the index has no plan, as it has no scorer in Lucene. Its clause is left out before
// minimum_should_match is applied.
class Planner {
 public:
  Planner(const QueryTree& tree, const std::vector<ScoredField>& fields, const Bm25& bm25, QueryPlan& plan)
      : tree_(tree), fields_(fields), bm25_(bm25), plan_(plan) {}

  std::optional<uint32_t> plan(NodeId id, float boost, bool scores) {
    switch (tree_.type(id)) {
      case NodeType::kTerm: return plan_term(id, boost, scores);
      case NodeType::kBool: return plan_bool(tree_.clauses(id), boost, scores);
      case NodeType::kDisMax: return plan_dis_max(id, boost, scores);
      case NodeType::kConstantScore: {
        const auto child = plan(tree_.child(id), 1, false);
        if (!child || !scores) return child;
        PlanNode node = constant(PlanNode::Type::kConstantScore, boost);
        node.any = {*child};
        node.cost = plan_.nodes[*child].cost;
        return add(std::move(node));
      }
      case NodeType::kBoost: return plan(tree_.child(id), tree_.boost(id) * boost, scores);
      case NodeType::kMatchAll: {
        PlanNode node = constant(PlanNode::Type::kMatchAll, boost);
        node.scores = scores;
        node.cost = static_cast<double>(fields_[0].index->rows());
        return add(std::move(node));
      }
      case NodeType::kRows: return plan_rows(*tree_.rows(id), tree_.row_scores(id).get(), boost, scores);
      case NodeType::kMatchNone: break;
    }
    return {};
  }

 private:
  uint32_t add(PlanNode node) {
    plan_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(plan_.nodes.size() - 1);
  }

  static void check_finite(float number) {
    if (std::isfinite(number)) return;
    throw Error(ErrorCode::kBadArgument, "the boosts of a query are too large: a term's weight overflows float32");
  }

  static PlanNode constant(PlanNode::Type type, float score) {
    check_finite(score);
    PlanNode node;
    node.type = type;
    node.number = score;
    node.most = node.least = score;
    node.last_place = last_place_of(score, score);
    return node;
  }

  std::optional<uint32_t> plan_term(NodeId id, float boost, bool scores) {
    const ScoredField& field = fields_[tree_.field(id)];
    const uint64_t frequency = field.index->document_frequency(tree_.term(id));
    if (frequency == 0) return {};
    PlanNode node;
    node.type = PlanNode::Type::kTerm;
    node.scores = scores;
    node.field = tree_.field(id);
    node.term = &tree_.term(id);
    node.leaf = plan_.leaves++;
    node.cost = static_cast<double>(frequency);
    node.number = term_weight(bm25_, boost, inverse_document_frequency(frequency, field.index->counts().documents));
    check_finite(node.number);
    node.most = node.number;
    node.least = term_score(node.number, 1, field.inverse[field.index->longest_code()]);
    node.last_place = last_place_of(node.least, node.most);
    return add(std::move(node));
  }

  std::optional<uint32_t> plan_rows(const std::vector<uint64_t>& words, const std::vector<float>* row_scores, float boost, bool scores) {
    const auto expected = static_cast<size_t>(fields_[0].index->rows() + 63) / 64;
    if (words.size() != expected) {
      throw Error(ErrorCode::kBadArgument,
                  "a set of rows has " + std::to_string(words.size()) + " words, but the index has " + std::to_string(expected));
    }
    uint64_t count = 0;
    for (const uint64_t word : words) count += static_cast<uint64_t>(__builtin_popcountll(word));
    if (count == 0) return {};
    PlanNode node = constant(PlanNode::Type::kRows, boost);
    node.scores = scores;
    node.rows = words.data();
    node.cost = static_cast<double>(count);
    if (row_scores != nullptr) {
      if (row_scores->size() != count) {
        throw Error(ErrorCode::kBadArgument,
                    "a set of " + std::to_string(count) + " rows has " + std::to_string(row_scores->size()) + " scores");
      }
      if (scores) describe_scores(words, *row_scores, boost, node);
    }
    return add(std::move(node));
  }

  // Sets the rows of a kRows node with their scores, and the range of the scores.
  static void describe_scores(const std::vector<uint64_t>& words, const std::vector<float>& row_scores, float boost, PlanNode& node) {
    node.most = 0;
    node.least = std::numeric_limits<double>::infinity();
    for (size_t word = 0; word < words.size(); word++) {
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        const float score = row_scores[node.scored.size()] * boost;
        if (!(row_scores[node.scored.size()] >= 0)) {
          throw Error(ErrorCode::kBadArgument, "the score of a row must be at least 0");
        }
        check_finite(score);
        node.scored.push_back({static_cast<int64_t>(word * 64) + __builtin_ctzll(bits), score});
        node.most = std::max<double>(node.most, score);
        if (score > 0) node.least = std::min<double>(node.least, score);
      }
    }
    if (node.most == 0) node.least = 0;
    node.last_place = last_place_of(node.least, node.most);
  }

  std::optional<uint32_t> plan_dis_max(NodeId id, float boost, bool scores) {
    PlanNode node;
    node.type = PlanNode::Type::kDisMax;
    node.scores = scores;
    node.number = tree_.tie_breaker(id);
    for (const NodeId query : tree_.clauses(id).queries) {
      if (const auto child = plan(query, boost, scores)) node.any.push_back(*child);
    }
    if (node.any.empty()) return {};
    if (node.any.size() == 1) return node.any[0];
    double sum = 0;
    node.least = std::numeric_limits<double>::infinity();
    for (const uint32_t child : node.any) {
      const PlanNode& one = plan_.nodes[child];
      node.cost += one.cost;
      sum += one.most;
      if (one.most > 0) node.least = std::min(node.least, one.least);
    }
    node.most = sum;
    if (sum == 0) node.least = 0;
    node.last_place = last_place_of(node.least, node.most);
    return add(std::move(node));
  }

  std::optional<uint32_t> plan_bool(const Clauses& clauses, float boost, bool scores) {
    PlanNode node;
    node.type = PlanNode::Type::kBool;
    node.scores = scores;
    node.minimum = clauses.minimum;
    for (const NodeId query : clauses.must) {
      const auto child = plan(query, boost, scores);
      if (!child) return {};
      node.must.push_back(*child);
    }
    for (const NodeId query : clauses.filter) {
      const auto child = plan(query, 1, false);
      if (!child) return {};
      node.filter.push_back(*child);
    }
    for (const NodeId query : clauses.should) {
      if (const auto child = plan(query, boost, scores)) node.any.push_back(*child);
    }
    const auto shoulds = static_cast<int64_t>(node.any.size());
    if (shoulds < node.minimum) return {};
    if (shoulds == node.minimum) {
      node.must.insert(node.must.end(), node.any.begin(), node.any.end());
      node.any.clear();
      node.minimum = 0;
    }
    const bool required = !node.must.empty() || !node.filter.empty();
    if (!required && node.any.empty()) return {};
    if (!required) node.minimum = std::max<int64_t>(node.minimum, 1);
    if (required && !scores && node.minimum == 0) node.any.clear();
    for (const NodeId query : clauses.must_not) {
      if (const auto child = plan(query, 1, false)) node.must_not.push_back(*child);
    }
    describe_sums(node);
    const auto cheapest_first = [&](std::vector<uint32_t>& children) {
      std::stable_sort(children.begin(), children.end(), [&](uint32_t a, uint32_t b) { return plan_.nodes[a].cost < plan_.nodes[b].cost; });
    };
    cheapest_first(node.filter);
    if (!node.order_matters) cheapest_first(node.must);
    return add(std::move(node));
  }

  // Sets the cost of a kBool node, the range of its scores, and whether the order of addition matters. It does not if all sums are exact
  // in float64. They are if they stay below 2^(p + 53), because they are multiples of 2^p, p being the smallest last place of a clause.
  // `most` has to be below 2^(p + 52), half of that: a clause that is itself a sum may have been rounded up to a score above its `most`.
  void describe_sums(PlanNode& node) const {
    double most = 0;
    double least = std::numeric_limits<double>::infinity();
    int place = kAnyPlace;
    double should_cost = 0;
    double required_cost = std::numeric_limits<double>::infinity();
    const auto include = [&](uint32_t child) {
      const PlanNode& one = plan_.nodes[child];
      most += one.most;
      if (one.most > 0) least = std::min(least, one.least);
      place = std::min(place, one.last_place);
    };
    for (const uint32_t child : node.must) {
      include(child);
      required_cost = std::min(required_cost, plan_.nodes[child].cost);
    }
    for (const uint32_t child : node.any) {
      include(child);
      should_cost += plan_.nodes[child].cost;
    }
    for (const uint32_t child : node.filter) required_cost = std::min(required_cost, plan_.nodes[child].cost);
    node.cost = node.minimum > 0 ? std::min(required_cost, should_cost) : required_cost;
    node.most = most;
    node.least = most == 0 ? 0 : least;
    node.last_place = place;
    node.order_matters = node.scores && most > 0 && !(std::ilogb(node.most) + 1 - place < 53);
  }

  const QueryTree& tree_;
  const std::vector<ScoredField>& fields_;
  const Bm25& bm25_;
  QueryPlan& plan_;
};

}  // namespace

QueryPlan plan_query(const QueryTree& tree, NodeId root, const std::vector<ScoredField>& fields, const Bm25& bm25) {
  QueryPlan plan;
  const auto planned = Planner(tree, fields, bm25, plan).plan(root, 1, true);
  if (!planned) return {};
  plan.root = *planned;
  return plan;
}

}  // namespace trawl::lexical
