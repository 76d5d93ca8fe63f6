// Reads query trees from JavaScript.
#pragma once
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "trawl/analyser.hpp"
#include "trawl/lexical_query.hpp"

namespace trawl_addon {

// One rule of minimumShouldMatch: of a text with more than `above` terms, `count` terms, or `count` percent of them.
struct MinimumRule {
  int64_t above;
  int64_t count;
  bool is_percent;
};

// Query trees whose texts are not analysed yet. The texts point into the trees, so the object is neither copied nor moved.
class LexicalQueries {
 public:
  // `list`: an array of trees as in src/engine/lexical/lexical-query.ts. `fields`: the numbers of the fields by name. `rows`: the
  // number of rows of the index. Throws TypeError for a value of the wrong type, an unknown field, a set that does not cover the
  // rows, and a tree that breaks kMaxQueryDepth or kMaxQueryNodes.
  LexicalQueries(const Napi::Value& list, const std::map<std::string, uint32_t>& fields, int64_t rows);
  LexicalQueries(const LexicalQueries&) = delete;
  LexicalQueries& operator=(const LexicalQueries&) = delete;

  // Replaces the texts by their terms. Call it once, on any thread. `analysers[f]` is the analyser of field f. Throws kCancelled.
  void analyse(const std::vector<trawl::lexical::Analyser>& analysers, const std::atomic<bool>& cancel);

  const std::vector<trawl::lexical::Query>& trees() const { return trees_; }
  // The number of distinct terms in a tree; a term in several fields counts once. Call it after analyse().
  uint32_t count_terms(size_t tree) const;

 private:
  struct Text {
    trawl::lexical::Query* place;  // becomes a term, a bool of terms, or a query without matches
    uint32_t field;
    std::string text;
    bool all_terms;
    bool all_rows_without_terms;
    std::vector<MinimumRule> minimum;
  };

  void count_nodes(const Napi::Value& value, int64_t more);
  void read(const Napi::Value& value, trawl::lexical::Query& query, int depth);
  void read_text(const Napi::Object& object, trawl::lexical::Query& query);
  trawl::lexical::RowBits rows_of(const Napi::Value& value);
  trawl::lexical::RowScores scores_of(const Napi::Value& value);
  void read_clauses(const Napi::Value& value, const std::string& name, std::vector<trawl::lexical::Query>& clauses, int depth);
  uint32_t field_of(const Napi::Value& value) const;

  const std::map<std::string, uint32_t>& fields_;  // used by the constructor only
  const int64_t rows_;
  std::multimap<uint64_t, trawl::lexical::RowBits> sets_;  // by a hash of their bits; equal sets are one object
  std::vector<trawl::lexical::RowScores> scores_;          // equal scores are one object
  std::vector<trawl::lexical::Query> trees_;
  std::vector<Text> texts_;
  int64_t nodes_ = 0;  // of the tree that is read
};

}  // namespace trawl_addon
