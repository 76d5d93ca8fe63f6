// Composed BM25 queries over one or more fields. Scores equal those of Lucene 9.12 bit for bit. Lucene 10.1 rewrites nested
// bools further, which changes the last bit of a few scores; this engine does not.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trawl/lexical_index.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl::lexical {

enum class QueryType {
  kTerm,           // rows whose field has the term; BM25
  kBool,           // rows that match all of must and filter, none of must_not, and enough of should
  kDisMax,         // rows that match any of `queries`; score: the best score plus tie_breaker times the sum of the others
  kConstantScore,  // rows that match queries[0]; score: the boost
  kMatchAll,       // all rows; score: the boost
  kMatchNone,
};

// A node of a query tree. Members that belong to other types are ignored.
struct Query {
  QueryType type = QueryType::kMatchNone;
  float boost = 1;  // multiplies the weights of all terms and constants below this node; finite, at least 0

  uint32_t field = 0;  // kTerm: number of the index
  std::string term;    // kTerm: one term, after analysis

  // kBool. Only must and should clauses affect the score. Without must and filter, at least one should clause must match, so a
  // bool of only must_not matches no row: add kMatchAll as a filter.
  std::vector<Query> must, should, filter, must_not;
  int64_t minimum_should_match = 0;  // at least 0; above 1, equal clauses count separately

  std::vector<Query> queries;  // kDisMax, kConstantScore
  float tie_breaker = 0;       // kDisMax: from 0 to 1
};

inline constexpr int kMaxQueryDepth = 32;           // most nodes on the way from the root to a leaf, both included
inline constexpr int64_t kMaxQueryNodes = 1 << 18;  // most nodes of a tree; the number of clauses has no other limit

// The k best rows of each query, best first, of equal scores the lower row first. A hit may have the score 0.
// All fields must be indexes of the same rows; k1, b and the filter apply to all fields. The answer to a query has the same
// bits for any batch, threads, shards and pruning. Throws kBadArgument (options, fields, trees), kBadFile, kCancelled.
LexicalResult lexical_search(const std::vector<const LexicalIndex*>& fields, const std::vector<Query>& queries,
                             const LexicalOptions& options, ThreadPool& pool);

}  // namespace trawl::lexical
