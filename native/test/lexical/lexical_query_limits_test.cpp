// Queries that are refused or very large, and damaged files.
#include <atomic>
#include <cmath>
#include <random>

#include "lexical_queries.hpp"

using namespace lexical_test;

TEST("query: trees that break a limit and invalid numbers are refused") {
  std::mt19937 random(53);
  ThreadPool pool(1);
  const std::vector<bool> all(4, true);
  const auto field = build_field({"a b", "b", "", "a a c"}, 1, all, random, pool);
  const auto shorter = build_field({"a"}, 1, all, random, pool);
  LexicalOptions options;
  const auto search = [&](const Query& query) { return lexical_search(Fields{&field->index}, {query}, options, pool); };
  CHECK_REFUSED(search(term("a", 1)), ErrorCode::kBadArgument, "field 1");
  CHECK_REFUSED(search(term("a", 0, -1)), ErrorCode::kBadArgument, "boost");
  CHECK_REFUSED(search(term("a", 0, std::nanf(""))), ErrorCode::kBadArgument, "boost");
  CHECK_REFUSED(search(any_of({term("a")}, -1)), ErrorCode::kBadArgument, "minimum_should_match");
  CHECK_REFUSED(search(best_of({term("a")}, 1.5f)), ErrorCode::kBadArgument, "tie_breaker");
  CHECK_REFUSED(search(of_type(QueryType::kRows)), ErrorCode::kBadArgument, "set of rows");
  Query unscored = of_type(QueryType::kRows);
  unscored.rows = std::make_shared<std::vector<uint64_t>>(std::vector<uint64_t>{3});
  unscored.row_scores = std::make_shared<std::vector<float>>(std::vector<float>{1});
  CHECK_REFUSED(search(unscored), ErrorCode::kBadArgument, "a set of 2 rows has 1 scores");
  unscored.row_scores = std::make_shared<std::vector<float>>(std::vector<float>{1, -1});
  CHECK_REFUSED(search(unscored), ErrorCode::kBadArgument, "at least 0");
  Query other_rows = of_type(QueryType::kRows);
  other_rows.rows = std::make_shared<std::vector<uint64_t>>(1000);
  CHECK_REFUSED(search(other_rows), ErrorCode::kBadArgument, "1000 words");
  CHECK_REFUSED(search(of_type(QueryType::kConstantScore)), ErrorCode::kBadArgument, "constant_score");
  CHECK_REFUSED(search(any_of({any_of({term("a"), term("b")}, 0, 1e30f), term("c")}, 0, 1e30f)), ErrorCode::kBadArgument, "boosts");
  CHECK_REFUSED(search(any_of({term("a", 0, 3e38f), term("a", 0, 3e38f)})), ErrorCode::kBadArgument, "boosts");
  CHECK_REFUSED(lexical_search(Fields{}, {term("a")}, options, pool), ErrorCode::kBadArgument, "field");
  CHECK_REFUSED(lexical_search(Fields{&field->index, &shorter->index}, {term("a")}, options, pool), ErrorCode::kBadArgument, "rows");
  Query deep = term("a");
  for (int i = 1; i < kMaxQueryDepth; i++) deep = any_of({std::move(deep), term("b")}, 0, 1.01f);
  CHECK_EQUAL(search(deep).counts[0], int64_t{3});
  CHECK_REFUSED(search(any_of({deep, term("b")})), ErrorCode::kBadArgument, "nested");
  Query wide = any_of(std::vector<Query>(kMaxQueryNodes - 1, term("a")));
  CHECK_EQUAL(search(wide).counts[0], int64_t{2});
  wide.should.push_back(term("a"));
  CHECK_REFUSED(search(wide), ErrorCode::kBadArgument, "nodes");
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  CHECK_REFUSED(search(all_of({term("a"), term("b")})), ErrorCode::kCancelled, "cancel");
}

TEST("query: a damaged file is refused or answered, but the search ends") {
  std::mt19937 random(67);
  ThreadPool pool(1);
  const Texts texts = random_texts(random, 900, 40, 30);
  oracle::TempDir directory;
  const std::string path = directory.file();
  build(path, texts, Analyser::kWhitespace, pool);
  const std::vector<uint8_t> bytes = oracle::read_file(path);
  std::vector<Query> queries;
  for (int i = 0; i < 12; i++) queries.push_back(random_query(random, 3, 40, 1));
  LexicalOptions options;
  options.k = 20;
  for (int i = 0; i < (check::small() ? 100 : 600); i++) {
    std::vector<uint8_t> changed = bytes;
    changed[random() % changed.size()] ^= 1 + random() % 255;
    oracle::write_file(path, changed.data(), changed.size());
    try {
      LexicalIndex index;
      index.add_shard(path);
      lexical_search(Fields{&index}, queries, options, pool);
    } catch (const trawl::Error& error) {
      CHECK(error.code == ErrorCode::kBadFile || error.code == ErrorCode::kReadFailed);
    }
  }
}

TEST("query: a hundred thousand clauses, flat or nested, have the right hits") {
  std::mt19937 random(59);
  ThreadPool pool(2);
  const int words = check::small() ? 5000 : 100000;
  Texts texts(2000);
  for (int w = 0; w < words; w++) texts[random() % texts.size()] += "w" + std::to_string(w) + " ";
  const std::vector<bool> all(texts.size(), true);
  const auto field = build_field(texts, 2, all, random, pool);
  std::vector<Query> flat, groups, constants;
  for (int w = 0; w < words; w++) flat.push_back(term("w" + std::to_string(w)));
  for (int w = 0; w + 1 < words; w += 2) groups.push_back(best_of({flat[w], flat[w + 1]}, 0.3f));
  Query required = any_of(flat, 2);
  required.filter = {of_type(QueryType::kMatchAll)};
  // Distribute the clauses over the levels of the nesting.
  Query deep = any_of({flat[0], flat[1]});
  const int levels = kMaxQueryDepth - 2;
  for (int level = 0; level < levels; level++) {
    std::vector<Query> share(flat.begin() + words * level / levels, flat.begin() + words * (level + 1) / levels);
    share.push_back(std::move(deep));
    deep = any_of(std::move(share), level % 2, level % 3 == 0 ? 1.5f : 1);
    if (level % 4 == 1) deep.filter = {constant(any_of({flat[level], flat[level + 1], of_type(QueryType::kMatchAll)}))};
  }
  LexicalOptions options;
  options.k = 10;
  const LexicalResult result =
      lexical_search(Fields{&field->index}, {any_of(flat), any_of(groups), required, deep, any_of(flat, words)}, options, pool);
  for (int i = 0; i < 4; i++) CHECK_EQUAL(result.counts[i], int64_t{10});
  CHECK_EQUAL(result.counts[4], int64_t{0});
}
