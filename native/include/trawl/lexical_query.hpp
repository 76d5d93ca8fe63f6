// Composed BM25 queries over one or more fields. Scores have the same bits as in Lucene 9.12. Lucene 10.1 rewrites nested
// bools further, which changes the last bit of a few scores; this engine does not.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
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
  kRows,           // the rows of a set; score: the boost, times the row's score if the query has scores
  kMatchAll,       // all rows; score: the boost
  kMatchNone,
};

// A set of rows: bit (row & 63) of word (row >> 6), with a word for each 64 rows of the index. Bits past the rows are 0.
using RowBits = std::shared_ptr<const std::vector<uint64_t>>;

// A score for each row of a set, in the order of the rows; finite, at least 0.
using RowScores = std::shared_ptr<const std::vector<float>>;

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

  RowBits rows;          // kRows; queries with the same pointers are equal
  RowScores row_scores;  // kRows; null: 1 for each row
};

struct QueryOptions : LexicalOptions {
  QueryOptions() = default;
  QueryOptions(const LexicalOptions& options) : LexicalOptions(options) {}

  int64_t count = 0;                                          // counts the matching rows exactly up to this number; 0: does not count
  float min_score = -std::numeric_limits<float>::infinity();  // rows with a lower score do not match
};

inline constexpr int kMaxQueryDepth = 32;           // most nodes on the way from the root to a leaf, both included
inline constexpr int64_t kMaxQueryNodes = 1 << 18;  // most nodes of a tree; the number of clauses has no other limit

// The k best rows of each query, best first, of equal scores the lower row first. A hit may have the score 0.
// All fields must be indexes of the same rows; k1, b and the filter apply to all fields. The answer to a query has the same
// bits for any batch, threads, shards and pruning. Throws kBadArgument (options, fields, trees), kBadFile, kCancelled.
// LexicalResult::totals has the matching rows of each query: exact up to options.count, else options.count + 1.
LexicalResult lexical_search(const std::vector<const LexicalIndex*>& fields, const std::vector<Query>& queries, const QueryOptions& options,
                             ThreadPool& pool);

}  // namespace trawl::lexical
