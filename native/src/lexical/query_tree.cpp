#include "lexical/query_tree.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "trawl/error.hpp"

namespace trawl::lexical {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kBadArgument, what); }

template <class Number>
void append(std::string& key, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof number);
}

}  // namespace

QueryTree::QueryTree(const Query& query, size_t fields) { root_ = copy(query, fields, 1); }

std::vector<NodeId> QueryTree::copy_all(const std::vector<Query>& queries, size_t fields, int depth) {
  std::vector<NodeId> ids;
  ids.reserve(queries.size());
  for (const Query& query : queries) ids.push_back(copy(query, fields, depth));
  return ids;
}

NodeId QueryTree::copy(const Query& query, size_t fields, int depth) {
  if (depth > kMaxQueryDepth) refuse("a query is nested deeper than " + std::to_string(kMaxQueryDepth) + " levels; flatten it");
  if (++copied_ > kMaxQueryNodes) refuse("a query has more than " + std::to_string(kMaxQueryNodes) + " nodes; shorten it");
  if (!(query.boost >= 0) || !std::isfinite(query.boost)) {
    refuse("a boost must be a number of at least 0, but is " + std::to_string(query.boost));
  }
  NodeId id = 0;
  switch (query.type) {
    case QueryType::kTerm:
      if (query.field >= fields) {
        refuse("a term names field " + std::to_string(query.field) + ", but there are " + std::to_string(fields) + " fields");
      }
      terms_.push_back(query.term);
      id = add({NodeType::kTerm, query.field, 1, static_cast<uint32_t>(terms_.size() - 1)});
      break;
    case QueryType::kBool: {
      if (query.minimum_should_match < 0) {
        refuse("minimum_should_match must be at least 0, but is " + std::to_string(query.minimum_should_match));
      }
      Clauses clauses;
      clauses.must = copy_all(query.must, fields, depth + 1);
      clauses.should = copy_all(query.should, fields, depth + 1);
      clauses.filter = copy_all(query.filter, fields, depth + 1);
      clauses.must_not = copy_all(query.must_not, fields, depth + 1);
      clauses.minimum = query.minimum_should_match;
      id = make_bool(std::move(clauses));
      break;
    }
    case QueryType::kDisMax:
      if (!(query.tie_breaker >= 0) || !(query.tie_breaker <= 1)) {
        refuse("a tie_breaker must be from 0 to 1, but is " + std::to_string(query.tie_breaker));
      }
      id = make_dis_max(copy_all(query.queries, fields, depth + 1), query.tie_breaker);
      break;
    case QueryType::kConstantScore:
      if (query.queries.size() != 1) {
        refuse("a constant_score must have one query, but has " + std::to_string(query.queries.size()));
      }
      id = make_constant_score(copy(query.queries[0], fields, depth + 1));
      break;
    case QueryType::kRows:
      if (query.rows == nullptr) refuse("a query for rows has no set of rows");
      sets_.push_back({query.rows, query.row_scores});
      id = add({NodeType::kRows, 0, 1, static_cast<uint32_t>(sets_.size() - 1)});
      break;
    case QueryType::kMatchAll: id = add({NodeType::kMatchAll}); break;
    case QueryType::kMatchNone: return match_none();
  }
  return query.boost == 1 ? id : make_boost(id, query.boost);
}

NodeId QueryTree::add(Node node) {
  nodes_.push_back(node);
  classes_.push_back(kUnknownClass);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId QueryTree::match_none() { return add({NodeType::kMatchNone}); }

NodeId QueryTree::make_bool(Clauses clauses) {
  clauses_.push_back(std::move(clauses));
  return add({NodeType::kBool, 0, 1, static_cast<uint32_t>(clauses_.size() - 1)});
}

NodeId QueryTree::make_dis_max(std::vector<NodeId> queries, float tie_breaker) {
  Clauses clauses;
  clauses.queries = std::move(queries);
  clauses_.push_back(std::move(clauses));
  return add({NodeType::kDisMax, 0, tie_breaker, static_cast<uint32_t>(clauses_.size() - 1)});
}

NodeId QueryTree::make_constant_score(NodeId child) { return add({NodeType::kConstantScore, 0, 1, child}); }

NodeId QueryTree::make_boost(NodeId child, double boost) {
  const auto number = static_cast<float>(boost);
  if (!std::isfinite(number)) refuse("the boosts of a query are too large: a product or a sum of boosts overflows float32");
  return add({NodeType::kBoost, 0, number == 0 ? 0 : number, child});  // no -0
}

uint32_t QueryTree::equality_class(NodeId id) {
  if (classes_[id] != kUnknownClass) return classes_[id];
  const Node node = nodes_[id];
  std::string key;
  append(key, node.type);
  const auto append_all = [&](const std::vector<NodeId>& queries, bool count_equal) {
    std::vector<uint32_t> classes;
    classes.reserve(queries.size());
    for (const NodeId query : queries) classes.push_back(equality_class(query));
    std::sort(classes.begin(), classes.end());
    if (!count_equal) classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    append(key, classes.size());
    for (const uint32_t one : classes) append(key, one);
  };
  switch (node.type) {
    case NodeType::kTerm:
      append(key, node.field);
      key += terms_[node.content];
      break;
    case NodeType::kBool: {
      const Clauses& clauses = clauses_[node.content];
      append(key, clauses.minimum);
      append_all(clauses.must, true);
      append_all(clauses.should, true);
      append_all(clauses.filter, false);
      append_all(clauses.must_not, false);
      break;
    }
    case NodeType::kDisMax:
      append(key, node.number == 0 ? 0.0f : node.number);
      append_all(clauses_[node.content].queries, true);
      break;
    case NodeType::kConstantScore: append(key, equality_class(node.content)); break;
    case NodeType::kBoost:
      append(key, node.number);
      append(key, equality_class(node.content));
      break;
    case NodeType::kRows:
      append(key, reinterpret_cast<uintptr_t>(sets_[node.content].rows.get()));
      append(key, reinterpret_cast<uintptr_t>(sets_[node.content].scores.get()));
      break;
    case NodeType::kMatchAll:
    case NodeType::kMatchNone: break;
  }
  const auto next = static_cast<uint32_t>(class_of_key_.size());
  return classes_[id] = class_of_key_.emplace(std::move(key), next).first->second;
}

}  // namespace trawl::lexical
