// A second implementation of the rewriting of queries, one step at a time, as Lucene's classes do it.
#pragma once
#include "lexical_texts.hpp"
#include "trawl/lexical_query.hpp"

namespace lexical_test {

// A query tree that owns copies of its parts. A node "^" is Lucene's BoostQuery.
struct Tree {
  std::string kind;  // term, bool, max, constant, rows, all, none, ^
  float number = 1;  // boost or tie breaker
  uint32_t field = 0;
  std::string word;
  trawl::lexical::RowBits rows;  // `word` then holds the addresses of rows and scores
  trawl::lexical::RowScores scores;
  int64_t minimum = 0;
  std::vector<Tree> must, should, filter, must_not, of;

  // The exact tree as text.
  std::string text() const {
    std::string out =
        "(" + kind + " " + std::to_string(bits_of(number)) + " " + std::to_string(field) + word + " " + std::to_string(minimum);
    for (const auto* list : {&must, &should, &filter, &must_not, &of}) {
      out += "[";
      for (const Tree& one : *list) out += one.text();
      out += "]";
    }
    return out + ")";
  }

  // A text that is equal for queries that Lucene considers equal.
  std::string key() const {
    std::string out =
        "(" + kind + " " + std::to_string(bits_of(number)) + " " + std::to_string(field) + word + " " + std::to_string(minimum);
    int which = 0;
    for (const auto* list : {&must, &should, &filter, &must_not, &of}) {
      std::vector<std::string> keys;
      for (const Tree& one : *list) keys.push_back(one.key());
      std::sort(keys.begin(), keys.end());
      if (which == 2 || which == 3) keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      out += "[";
      for (const std::string& one : keys) out += one;
      out += "]";
      which++;
    }
    return out + ")";
  }
  size_t clauses() const { return must.size() + should.size() + filter.size() + must_not.size(); }
};

// The tree of a query.
Tree to_tree(const trawl::lexical::Query& query);

// Rewrites until nothing changes.
Tree rewritten(Tree tree);

}  // namespace lexical_test
