// Follows BooleanQuery, BoostQuery, ConstantScoreQuery and DisjunctionMaxQuery of https://github.com/apache/lucene, release 9.12.3. A
// step applies the first rule that changes the node; steps are repeated until no rule changes it. Lucene also rewrites clauses one step
// at a time, but applies no other rule until they stop changing. So here the clauses are rewritten completely first.
#include "lexical/query_rewrite.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace trawl::lexical {
namespace {

constexpr NodeId kUnknown = 0xFFFFFFFF;

class Rewriter {
 public:
  explicit Rewriter(QueryTree& tree) : tree_(tree) {}

  NodeId to_fixed_point(NodeId id) {
    for (;;) {
      const NodeId next = step(id);
      if (next == id) return id;
      id = next;
    }
  }

 private:
  // Nodes are immutable, so each is rewritten once and the result is stored: the work grows with the number of nodes.
  NodeId step(NodeId id) {
    if (id < steps_.size() && steps_[id] != kUnknown) return steps_[id];
    const NodeId next = compute_step(id);
    if (steps_.size() <= id) steps_.resize(std::max<size_t>(tree_.size(), id + 1), kUnknown);
    return steps_[id] = next;
  }

  NodeId compute_step(NodeId id) {
    switch (tree_.type(id)) {
      case NodeType::kBool: return step_bool(id);
      case NodeType::kDisMax: return step_dis_max(id);
      case NodeType::kConstantScore: return step_constant_score(id);
      case NodeType::kBoost: return step_boost(id);
      default: return id;
    }
  }

  bool is(NodeId id, NodeType type) const { return tree_.type(id) == type; }

  NodeId step_boost(NodeId id) {
    const NodeId child = tree_.child(id);
    const float boost = tree_.boost(id);
    const NodeId next = step(child);
    if (boost == 1) return next;
    if (is(next, NodeType::kBoost)) return tree_.make_boost(tree_.child(next), boost * tree_.boost(next));
    if (is(next, NodeType::kMatchNone)) return next;
    if (boost == 0 && !is(next, NodeType::kConstantScore)) return tree_.make_boost(tree_.make_constant_score(next), 0);
    return next == child ? id : tree_.make_boost(next, boost);
  }

  NodeId step_constant_score(NodeId id) {
    const NodeId child = tree_.child(id);
    NodeId next = step(child);
    if (is(next, NodeType::kBoost) || is(next, NodeType::kConstantScore)) {
      next = tree_.child(next);
    } else if (is(next, NodeType::kBool)) {
      next = without_scores(next);
    }
    if (is(next, NodeType::kMatchNone)) return next;
    if (next != child) return tree_.make_constant_score(next);
    return id;
  }

  NodeId step_dis_max(NodeId id) {
    const std::vector<NodeId>& queries = tree_.clauses(id).queries;
    if (queries.empty()) return tree_.match_none();
    if (queries.size() == 1) return queries[0];
    if (tree_.tie_breaker(id) == 1) {
      Clauses sum;
      sum.should = queries;
      return tree_.make_bool(std::move(sum));
    }
    std::vector<NodeId> next;
    next.reserve(queries.size());
    for (const NodeId query : queries) next.push_back(to_fixed_point(query));
    return next == queries ? id : tree_.make_dis_max(std::move(next), tree_.tie_breaker(id));
  }

  // Rewrites a bool of which only the matching rows are needed: must becomes filter, and should clauses that need not match are
  // dropped.
  NodeId without_scores(NodeId id) {
    const auto known = without_scores_.find(id);
    if (known != without_scores_.end()) return known->second;
    const Clauses& clauses = tree_.clauses(id);
    Clauses next;
    next.minimum = clauses.minimum;
    bool changed = !clauses.must.empty();
    const auto move = [&](const std::vector<NodeId>& from, std::vector<NodeId>& to) {
      for (const NodeId query : from) {
        NodeId inner = query;
        if (is(inner, NodeType::kBoost)) inner = tree_.child(inner);
        if (is(inner, NodeType::kConstantScore)) inner = tree_.child(inner);
        if (is(inner, NodeType::kBool)) inner = without_scores(inner);
        changed |= inner != query;
        to.push_back(inner);
      }
    };
    move(clauses.must, next.filter);
    move(clauses.filter, next.filter);
    move(clauses.must_not, next.must_not);
    if (clauses.minimum > 0 || clauses.must.size() + clauses.filter.size() == 0) {
      move(clauses.should, next.should);
    } else {
      changed |= !clauses.should.empty();
    }
    const NodeId result = changed ? tree_.make_bool(std::move(next)) : id;
    without_scores_.emplace(id, result);
    return result;
  }

  // Each rule returns the new node, or nothing if it does not apply. The order of the rules is Lucene's.
  NodeId step_bool(NodeId id) {
    const Clauses& clauses = tree_.clauses(id);
    if (clauses.count() == 0) return tree_.match_none();
    using Rule = std::optional<NodeId> (Rewriter::*)(const Clauses&);
    for (const Rule rule :
         {&Rewriter::unwrap_single_clause, &Rewriter::step_clauses, &Rewriter::drop_equal_filters, &Rewriter::refuse_contradiction,
          &Rewriter::drop_needless_filters, &Rewriter::join_should_and_filter, &Rewriter::merge_equal_shoulds, &Rewriter::merge_equal_musts,
          &Rewriter::must_of_all_rows, &Rewriter::splice_disjunctions, &Rewriter::apply_minimum}) {
      if (const std::optional<NodeId> next = (this->*rule)(clauses)) return *next;
    }
    return id;
  }

  std::optional<NodeId> unwrap_single_clause(const Clauses& clauses) {
    if (clauses.count() != 1) return {};
    if (clauses.minimum <= 1 && clauses.should.size() == 1) return clauses.should[0];
    if (clauses.minimum != 0) return {};
    if (clauses.must.size() == 1) return clauses.must[0];
    if (clauses.filter.size() == 1) return tree_.make_boost(tree_.make_constant_score(clauses.filter[0]), 0);
    return tree_.match_none();
  }

  std::optional<NodeId> step_clauses(const Clauses& clauses) {
    Clauses next;
    next.minimum = clauses.minimum;
    bool changed = false;
    std::optional<NodeId> none;
    struct Role {
      bool scores, required;
    };
    const auto rewrite = [&](const std::vector<NodeId>& from, std::vector<NodeId>& to, Role role) {
      to.reserve(from.size());
      for (const NodeId query : from) {
        const NodeId rewritten = role.scores ? to_fixed_point(query) : filter_to_fixed_point(query);
        if (is(rewritten, NodeType::kMatchNone)) {
          changed = true;
          if (role.required) none = rewritten;
          continue;
        }
        changed |= rewritten != query;
        to.push_back(rewritten);
      }
    };
    rewrite(clauses.must, next.must, {/*scores=*/true, /*required=*/true});
    rewrite(clauses.should, next.should, {/*scores=*/true, /*required=*/false});
    rewrite(clauses.filter, next.filter, {/*scores=*/false, /*required=*/true});
    rewrite(clauses.must_not, next.must_not, {/*scores=*/false, /*required=*/false});
    if (none) return none;
    if (!changed) return {};
    return tree_.make_bool(std::move(next));
  }

  NodeId filter_to_fixed_point(NodeId id) {
    for (;;) {
      const NodeId next = step_filter(id);
      if (next == id) return id;
      id = next;
    }
  }

  NodeId step_filter(NodeId query) {
    const auto [wrapped, is_new] = wrapped_.emplace(query, kUnknown);
    if (is_new) wrapped->second = tree_.make_constant_score(query);
    const NodeId next = step(wrapped->second);
    return is(next, NodeType::kConstantScore) ? tree_.child(next) : next;
  }

  std::unordered_set<uint32_t> classes_of(const std::vector<NodeId>& queries) {
    std::unordered_set<uint32_t> classes;
    for (const NodeId query : queries) classes.insert(tree_.equality_class(query));
    return classes;
  }

  std::vector<NodeId> distinct(const std::vector<NodeId>& queries) {
    std::unordered_set<uint32_t> seen;
    std::vector<NodeId> kept;
    for (const NodeId query : queries) {
      if (seen.insert(tree_.equality_class(query)).second) kept.push_back(query);
    }
    return kept;
  }

  std::optional<NodeId> drop_equal_filters(const Clauses& clauses) {
    std::vector<NodeId> filter = distinct(clauses.filter);
    std::vector<NodeId> must_not = distinct(clauses.must_not);
    if (filter.size() == clauses.filter.size() && must_not.size() == clauses.must_not.size()) return {};
    Clauses next = clauses;
    next.filter = std::move(filter);
    next.must_not = std::move(must_not);
    return tree_.make_bool(std::move(next));
  }

  std::optional<NodeId> refuse_contradiction(const Clauses& clauses) {
    if (clauses.must_not.empty()) return {};
    const auto must = classes_of(clauses.must);
    const auto filter = classes_of(clauses.filter);
    for (const NodeId query : clauses.must_not) {
      const uint32_t one = tree_.equality_class(query);
      if (is(query, NodeType::kMatchAll) || must.count(one) != 0 || filter.count(one) != 0) return tree_.match_none();
    }
    return {};
  }

  // Drops filters that match all rows or that are also must clauses.
  std::optional<NodeId> drop_needless_filters(const Clauses& clauses) {
    if (clauses.filter.empty()) return {};
    const auto must = classes_of(clauses.must);
    const bool others = clauses.filter.size() > 1 || !clauses.must.empty();
    std::vector<NodeId> kept;
    for (const NodeId query : clauses.filter) {
      if (others && is(query, NodeType::kMatchAll)) continue;
      if (must.count(tree_.equality_class(query)) == 0) kept.push_back(query);
    }
    if (kept.size() == clauses.filter.size()) return {};
    Clauses next = clauses;
    next.filter = std::move(kept);
    return tree_.make_bool(std::move(next));
  }

  // A should clause that is also a filter becomes a must clause.
  std::optional<NodeId> join_should_and_filter(const Clauses& clauses) {
    if (clauses.should.empty() || clauses.filter.empty()) return {};
    const auto should = classes_of(clauses.should);
    const auto filter = classes_of(clauses.filter);
    Clauses next;
    next.must = clauses.must;
    next.must_not = clauses.must_not;
    next.minimum = clauses.minimum;
    for (const NodeId query : clauses.filter) {
      if (should.count(tree_.equality_class(query)) == 0) next.filter.push_back(query);
    }
    if (next.filter.size() == clauses.filter.size()) return {};
    for (const NodeId query : clauses.should) {
      if (filter.count(tree_.equality_class(query)) == 0) {
        next.should.push_back(query);
      } else {
        next.must.push_back(query);
        next.minimum--;
      }
    }
    next.minimum = std::max<int64_t>(next.minimum, 0);
    return tree_.make_bool(std::move(next));
  }

  // Merges the must or should clauses that differ only in their boosts into one clause with the sum of the boosts.
  std::optional<NodeId> merge_equal(const Clauses& clauses, std::vector<NodeId> Clauses::* kind) {
    const std::vector<NodeId>& queries = clauses.*kind;
    struct Merged {
      NodeId query;
      double boost;
    };
    std::vector<Merged> merged;
    std::unordered_map<uint32_t, size_t> places;
    for (NodeId query : queries) {
      double boost = 1;
      for (; is(query, NodeType::kBoost); query = tree_.child(query)) boost *= tree_.boost(query);
      const auto [place, is_new] = places.emplace(tree_.equality_class(query), merged.size());
      if (is_new) {
        merged.push_back({query, boost});
      } else {
        merged[place->second].boost += boost;
      }
    }
    if (merged.size() == queries.size()) return {};
    Clauses next = clauses;
    (next.*kind).clear();
    for (const Merged& one : merged) {
      (next.*kind).push_back(static_cast<float>(one.boost) == 1 ? one.query : tree_.make_boost(one.query, one.boost));
    }
    return tree_.make_bool(std::move(next));
  }

  std::optional<NodeId> merge_equal_shoulds(const Clauses& clauses) {
    if (clauses.should.empty() || clauses.minimum > 1) return {};
    return merge_equal(clauses, &Clauses::should);
  }

  std::optional<NodeId> merge_equal_musts(const Clauses& clauses) { return merge_equal(clauses, &Clauses::must); }

  // In a bool of filters and one must clause that matches all rows, the filters get the constant score of that clause.
  std::optional<NodeId> must_of_all_rows(const Clauses& clauses) {
    if (clauses.must.size() != 1 || clauses.filter.empty()) return {};
    NodeId must = clauses.must[0];
    float boost = 1;
    if (is(must, NodeType::kBoost)) {
      boost = tree_.boost(must);
      must = tree_.child(must);
    }
    if (!is(must, NodeType::kMatchAll)) return {};
    Clauses inner;
    inner.filter = clauses.filter;
    inner.must_not = clauses.must_not;
    NodeId constant = tree_.make_constant_score(tree_.make_bool(std::move(inner)));
    if (boost != 1) constant = tree_.make_boost(constant, boost);
    Clauses next;
    next.minimum = clauses.minimum;
    next.must = {constant};
    next.should = clauses.should;
    return tree_.make_bool(std::move(next));
  }

  std::optional<NodeId> splice_disjunctions(const Clauses& clauses) {
    if (clauses.minimum > 1) return {};
    const auto is_spliced = [&](NodeId query) { return is(query, NodeType::kBool) && tree_.clauses(query).is_pure_disjunction(); };
    if (std::none_of(clauses.should.begin(), clauses.should.end(), is_spliced)) return {};
    Clauses next = clauses;
    next.should.clear();
    for (const NodeId query : clauses.should) {
      if (!is_spliced(query)) {
        next.should.push_back(query);
        continue;
      }
      const std::vector<NodeId>& inner = tree_.clauses(query).should;
      next.should.insert(next.should.end(), inner.begin(), inner.end());
    }
    return tree_.make_bool(std::move(next));
  }

  std::optional<NodeId> apply_minimum(const Clauses& clauses) {
    const auto shoulds = static_cast<int64_t>(clauses.should.size());
    if (shoulds == 0 || shoulds > clauses.minimum) return {};
    if (shoulds < clauses.minimum) return tree_.match_none();
    Clauses next = clauses;
    next.must.insert(next.must.end(), clauses.should.begin(), clauses.should.end());
    next.should.clear();
    next.minimum = 0;
    return tree_.make_bool(std::move(next));
  }

  QueryTree& tree_;
  std::vector<NodeId> steps_;                          // by node
  std::unordered_map<NodeId, NodeId> without_scores_;  // of bools
  std::unordered_map<NodeId, NodeId> wrapped_;         // filters as constant scores
};

}  // namespace

NodeId rewrite_query(QueryTree& tree) { return Rewriter(tree).to_fixed_point(tree.root()); }

}  // namespace trawl::lexical
