// A query as Lucene represents it: immutable nodes, where a boost is a node too. The rewriting adds new nodes and leaves the old
// nodes in the tree.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "trawl/lexical_query.hpp"

namespace trawl::lexical {

using NodeId = uint32_t;

enum class NodeType : uint8_t { kTerm, kBool, kDisMax, kConstantScore, kRows, kBoost, kMatchAll, kMatchNone };

struct Clauses {
  std::vector<NodeId> must, should, filter, must_not;  // kBool
  int64_t minimum = 0;                                 // kBool: should clauses that must match
  std::vector<NodeId> queries;                         // kDisMax

  size_t count() const { return must.size() + should.size() + filter.size() + must_not.size(); }
  bool is_pure_disjunction() const { return count() == should.size() && minimum <= 1; }
};

class QueryTree {
 public:
  // Copies a query. Throws kBadArgument if it breaks a limit, names a field that does not exist, or holds an invalid number.
  QueryTree(const Query& query, size_t fields);

  NodeId root() const { return root_; }

  NodeType type(NodeId id) const { return nodes_[id].type; }
  float boost(NodeId id) const { return nodes_[id].number; }        // kBoost
  float tie_breaker(NodeId id) const { return nodes_[id].number; }  // kDisMax
  NodeId child(NodeId id) const { return nodes_[id].content; }      // kBoost, kConstantScore
  uint32_t field(NodeId id) const { return nodes_[id].field; }      // kTerm
  const std::string& term(NodeId id) const { return terms_[nodes_[id].content]; }
  const RowBits& rows(NodeId id) const { return sets_[nodes_[id].content].rows; }  // kRows
  const RowScores& row_scores(NodeId id) const { return sets_[nodes_[id].content].scores; }
  const Clauses& clauses(NodeId id) const { return clauses_[nodes_[id].content]; }  // kBool, kDisMax

  // Two queries have the same class if Lucene considers them equal. For bool and dis_max the order of the clauses does not matter,
  // and for filter and must_not repeated clauses do not matter.
  uint32_t equality_class(NodeId id);

  NodeId match_none();
  NodeId make_bool(Clauses clauses);
  NodeId make_dis_max(std::vector<NodeId> queries, float tie_breaker);
  NodeId make_constant_score(NodeId child);
  // Throws kBadArgument if the boost, which may be a product or a sum of boosts, is infinite.
  NodeId make_boost(NodeId child, double boost);

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    NodeType type;
    uint32_t field = 0;
    float number = 1;
    uint32_t content = 0;  // id of the child, or index of the term, the clauses or the set
  };
  struct RowsWithScores {
    RowBits rows;
    RowScores scores;
  };
  static constexpr uint32_t kUnknownClass = 0xFFFFFFFF;

  NodeId copy(const Query& query, size_t fields, int depth);
  std::vector<NodeId> copy_all(const std::vector<Query>& queries, size_t fields, int depth);
  NodeId add(Node node);

  std::deque<Node> nodes_;
  std::deque<Clauses> clauses_;
  std::deque<std::string> terms_;
  std::deque<RowsWithScores> sets_;
  std::vector<uint32_t> classes_;
  std::unordered_map<std::string, uint32_t> class_of_key_;
  int64_t copied_ = 0;
  NodeId root_ = 0;
};

}  // namespace trawl::lexical
