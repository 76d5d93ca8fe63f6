// Helpers of the tests of composed queries: short names for queries, random queries, and fields.
#pragma once
#include "lexical_texts.hpp"
#include "trawl/lexical_query.hpp"

namespace lexical_test {

inline Query term(const std::string& text, uint32_t field = 0, float boost = 1) {
  Query query;
  query.type = QueryType::kTerm;
  query.term = text;
  query.field = field;
  query.boost = boost;
  return query;
}

inline Query any_of(std::vector<Query> should, int64_t minimum = 0, float boost = 1) {
  Query query;
  query.type = QueryType::kBool;
  query.should = std::move(should);
  query.minimum_should_match = minimum;
  query.boost = boost;
  return query;
}

inline Query all_of(std::vector<Query> must) {
  Query query;
  query.type = QueryType::kBool;
  query.must = std::move(must);
  return query;
}

inline Query best_of(std::vector<Query> queries, float tie_breaker = 0) {
  Query query;
  query.type = QueryType::kDisMax;
  query.queries = std::move(queries);
  query.tie_breaker = tie_breaker;
  return query;
}

inline Query constant(Query inner, float boost = 1) {
  Query query;
  query.type = QueryType::kConstantScore;
  query.queries = {std::move(inner)};
  query.boost = boost;
  return query;
}

inline Query of_type(QueryType type, float boost = 1) {
  Query query;
  query.type = type;
  query.boost = boost;
  return query;
}

// A tree of at most `depth` levels over the words w0 to w<words - 1> and the sets of rows, if any.
Query random_query(std::mt19937& random, int depth, int words, int fields, const std::vector<RowBits>& sets = {});

using Fields = std::vector<const LexicalIndex*>;

struct Field {
  oracle::TempDir directory;
  LexicalIndex index;
};

// A field of the texts without the rows that are not live. The shards begin at random rows, so that two fields have different shards.
std::unique_ptr<Field> build_field(const Texts& texts, int shards, const std::vector<bool>& is_live, std::mt19937& random,
                                   ThreadPool& pool);

}  // namespace lexical_test
