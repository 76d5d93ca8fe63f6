// The scores of composed queries: rewriting and rounding as in Lucene.
#include <cstdio>
#include <map>
#include <random>

#include "lexical_query_oracle.hpp"

using namespace lexical_test;

TEST("query: the rewriting rules determine the last bit of the score") {
  // A spliced bool is rounded once, a boosted bool twice; must and should are rounded separately.
  std::mt19937 random(43);
  ThreadPool pool(1);
  const int rows = 3000;
  const Texts texts = random_texts(random, rows, 10, 40);
  const std::vector<bool> all(rows, true);
  const auto field = build_field(texts, 1, all, random, pool);
  const QueryOracle oracle({texts}, all);
  LexicalOptions options;
  options.k = rows;
  const auto scores = [&](const Query& query) {
    const LexicalResult result = lexical_search(Fields{&field->index}, {query}, options, pool);
    check_equal(result, 0, oracle.search(query, options, all));
    std::map<int64_t, uint32_t> by_row;
    for (int64_t i = 0; i < result.counts[0]; i++) by_row[result.rows[i]] = bits_of(result.scores[i]);
    return by_row;
  };
  const std::vector<Query> words = {term("w0"), term("w1"), term("w2"), term("w3"), term("w4")};
  const auto flat = scores(any_of(words));
  CHECK(flat == scores(any_of({words[0], any_of({words[1], any_of({words[2], words[3]})}, 1), words[4]})));
  CHECK(flat == scores(best_of(words, 1)));
  CHECK(scores(any_of({words[0], words[0], words[1]})) == scores(any_of({term("w0", 0, 2), words[1]})));
  CHECK(scores(any_of({words[0], words[1]}, 2)) == scores(all_of({words[0], words[1]})));
  Query both = any_of({words[3], words[4]});
  both.must = {words[0], words[1], words[2]};
  const auto rounded_apart = scores(both);
  const auto rounded_once = scores(all_of(words));
  int different = 0;
  for (const auto& [row, bits] : rounded_once) different += rounded_apart.at(row) != bits ? 1 : 0;
  CHECK(different > 0);
}

TEST("query: trees have the hits and bits that Lucene 9.12.3 gave for them") {
  // Recorded with Lucene's BM25Similarity and with Elasticsearch's factor of 1 + k1, four hits each.
  std::vector<Texts> texts(2);
  for (int row = 0; row < 60; row++) {
    const auto words = [&](int count, int salt) {
      std::string text;
      for (int j = 0; j < count; j++) text += "w" + std::to_string((row * 7 + j * j * 3 + (row * j) % 11 + salt) % 13) + " ";
      return text;
    };
    texts[0].push_back(words(row % 5, 0));
    texts[1].push_back(words(row * 5 % 17, 4));
  }
  std::mt19937 random(61);
  ThreadPool pool(2);
  const std::vector<bool> all(60, true);
  const auto title = build_field(texts[0], 2, all, random, pool);
  const auto body = build_field(texts[1], 3, all, random, pool);
  const auto t = [](int word, uint32_t field = 0, float boost = 1) { return term("w" + std::to_string(word), field, boost); };

  Query rounded_apart = all_of({t(3, 1), t(5, 1)});
  rounded_apart.should = {t(1, 1), t(8), t(2, 1, 1.5f)};
  Query minimum = all_of({t(3, 1), t(5, 1)});
  minimum.should = {t(1, 1), t(2, 1), t(8, 1)};
  minimum.minimum_should_match = 2;
  minimum.must_not = {t(0)};
  Query should_and_filter = any_of({t(3, 1), t(5, 1), t(7)});
  should_and_filter.filter = {t(3, 1)};
  Query must_of_all_rows = all_of({of_type(QueryType::kMatchAll)});
  must_of_all_rows.filter = {t(3, 1), t(5, 1)};
  must_of_all_rows.should = {t(1)};
  Query inner = all_of({t(3, 1), t(1, 1)});
  inner.should = {t(5, 1)};
  Query absent_should = all_of({t(1, 1)});
  absent_should.should = {t(3, 1), t(5, 1), term("absent")};
  absent_should.minimum_should_match = 2;
  const std::vector<Query> queries = {
      best_of({any_of({t(3), t(5)}, 0, 2), any_of({t(3, 1), t(5, 1)})}, 0.3f),
      rounded_apart,
      any_of({t(3, 1), any_of({t(5, 1), t(8, 1), t(1)}, 0, 1.3f), any_of({t(2, 1), t(4, 1)})}),
      any_of({t(3, 1), t(3, 1), t(3, 1, 2), t(5)}),
      minimum,
      should_and_filter,
      must_of_all_rows,
      any_of({inner, best_of({t(2), t(2, 1), t(7, 1)}, 0.7f), constant(t(0))}),
      absent_should,
  };
  const char* const lucene[] = {
      "13:408843ad 32:405328f6 6:4039adc5 48:4021ac2c", "9:401a6266 22:40002a29 6:3ffb2a40 16:3feb7bbf",
      "54:406a07e0 57:405078ca 22:4024c784 3:402419a4", "50:40389f8c 13:403173b2 44:40311d5e 32:402fb80c",
      "9:4027901c 54:40118064 6:40070a9b 46:3ff21326",  "27:4008467c 54:3f9dce18 57:3f9be7c4 9:3f82596f",
      "54:3ffe8ec8 22:3febdd68 57:3febdd68 6:3f800000", "13:40172304 26:40136cb0 6:401093da 54:400d34c2",
      "54:3feb4944 9:3fd3267f 6:3fb51978 22:3fb24530",
  };
  const char* const elasticsearch[] = {
      "13:40f7c44d 32:40d96d39 6:40caf1d2 36:409f32e2",  "9:40926bfd 22:4075f3c4 16:406be5a2 6:405c5120",
      "54:40d52377 57:40c3fa3e 22:40a0a0a8 49:4093336b", "24:40c312f9 32:40b3e830 50:40b377da 21:40a93b52",
      "9:409ef6f5 54:4086a923 6:406c82c6 46:40678f17",   "27:407f7d5e 54:4012d03e 57:40129a1d 9:3ff0b795",
      "54:4033fc88 22:402b5fa4 57:402b5fa4 6:3f800000",  "9:4082efda 6:4082553a 54:408128d2 59:4064c5ce",
      "54:405b6ce4 9:4047ef2a 22:402b0da0 46:4022f204",
  };
  for (const bool factor : {false, true}) {
    LexicalOptions options;
    options.k = 4;
    options.k1 = factor ? 1.2f : 0.9f;
    options.b = factor ? 0.75f : 0.4f;
    options.factor_k1_plus_1 = factor;
    const LexicalResult result = lexical_search(Fields{&title->index, &body->index}, queries, options, pool);
    for (size_t i = 0; i < queries.size(); i++) {
      std::string hits;
      for (int64_t j = 0; j < result.counts[i]; j++) {
        char hit[32];
        std::snprintf(hit, sizeof hit, "%s%d:%08x", j == 0 ? "" : " ", static_cast<int>(result.rows[i * 4 + j]),
                      bits_of(result.scores[i * 4 + j]));
        hits += hit;
      }
      CHECK_EQUAL(hits, std::string((factor ? elasticsearch : lucene)[i]));
    }
  }
}

TEST("query: queries without a positive clause, or with only constants, match the same rows as in Lucene") {
  std::mt19937 random(47);
  ThreadPool pool(1);
  const auto field = build_field({"a b", "b", "", "a a c"}, 1, std::vector<bool>(4, true), random, pool);
  LexicalOptions options;
  const auto hits = [&](const Query& query) {
    const LexicalResult result = lexical_search(Fields{&field->index}, {query}, options, pool);
    std::string text;
    for (int64_t i = 0; i < result.counts[0]; i++)
      text += std::to_string(result.rows[i]) + ":" + std::to_string(result.scores[i]).substr(0, 3) + " ";
    return text;
  };
  CHECK_EQUAL(hits(of_type(QueryType::kMatchAll)), "0:1.0 1:1.0 2:1.0 3:1.0 ");
  CHECK_EQUAL(hits(of_type(QueryType::kMatchNone)), "");
  CHECK_EQUAL(hits(any_of({})), "");
  Query negative;
  negative.type = QueryType::kBool;
  negative.must_not = {term("a"), term("x")};
  CHECK_EQUAL(hits(negative), "");
  negative.filter = {of_type(QueryType::kMatchAll)};
  CHECK_EQUAL(hits(negative), "1:0.0 2:0.0 ");
  negative.must = {of_type(QueryType::kMatchAll, 2)};
  CHECK_EQUAL(hits(negative), "1:2.0 2:2.0 ");
  CHECK_EQUAL(hits(constant(term("b"), 3)), "0:3.0 1:3.0 ");
  CHECK_EQUAL(hits(any_of({term("a"), term("b")}, 3)), "");
  CHECK_EQUAL(hits(any_of({constant(term("a")), constant(term("b"))}, 2)), "0:2.0 ");
  CHECK_EQUAL(hits(best_of({constant(term("a")), constant(term("b"), 2)}, 0.5f)), "0:2.5 1:2.0 3:1.0 ");
}
