// A rewritten query with the numbers that are the same for all shards: weights, and the range of each node's scores.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lexical/query_tree.hpp"
#include "lexical/similarity.hpp"

namespace trawl::lexical {

struct RowWithScore {
  int64_t row;
  float score;
};

struct PlanNode {
  enum class Type : uint8_t { kTerm, kBool, kDisMax, kConstantScore, kRows, kMatchAll };
  Type type = Type::kMatchAll;
  bool scores = true;          // false if only the matching rows are needed
  bool order_matters = false;  // kBool: the float64 sums of its clauses may depend on the order of addition
  uint32_t field = 0;          // kTerm
  uint32_t leaf = 0;           // kTerm: number of the leaf among the terms
  float number = 1;            // kTerm: weight; kConstantScore, kRows, kMatchAll: score; kDisMax: tie breaker
  const std::string* term = nullptr;
  const uint64_t* rows = nullptr;                // kRows
  std::vector<RowWithScore> scored;              // kRows with scores: all rows of the set, ascending
  std::vector<uint32_t> must, filter, must_not;  // kBool, cheapest first; must is in the query's order if order_matters
  std::vector<uint32_t> any;                     // should clauses; the clauses of dis_max and constant_score; in the query's order
  int64_t minimum = 0;                           // kBool: should clauses that must match; above 0 if there are only should clauses
  double cost = 0;                               // estimated number of rows that it matches
  // Each score is 0, or a multiple of 2^last_place between `least` and `most`, which ignore the rounding of sums.
  double most = 0;
  double least = 0;
  int last_place = 0;
};

struct QueryPlan {
  std::vector<PlanNode> nodes;  // children before their parents; empty if no row matches
  uint32_t root = 0;
  uint32_t leaves = 0;
};

struct ScoredField {
  const LexicalIndex* index;
  InverseNorms inverse;  // unused if no row has a token
};

// `tree` must outlive the plan. Throws kBadArgument if a weight overflows float32.
QueryPlan plan_query(const QueryTree& tree, NodeId root, const std::vector<ScoredField>& fields, const Bm25& bm25);

}  // namespace trawl::lexical
