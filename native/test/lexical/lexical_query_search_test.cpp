// Searches for composed queries, compared with an exhaustive oracle, which rewrites the query differently.
#include <cmath>
#include <random>

#include "lexical_query_oracle.hpp"

using namespace lexical_test;

TEST("query: random trees have the oracle's hits and scores, bit for bit, for any k, threads, shards, filter, deletions and pruning") {
  std::mt19937 random(5);
  ThreadPool one(1);
  ThreadPool three(3);
  const int rounds = check::small() ? 3 : 10;
  for (int round = 0; round < rounds; round++) {
    const int words = round % 3 == 0 ? 12 : 60;
    const int rows = 200 + static_cast<int>(random() % (round % 4 == 3 ? 9000 : 1200));
    const std::vector<Texts> texts = {random_texts(random, rows, words, 6), random_texts(random, rows, words, round % 2 == 0 ? 15 : 40)};
    std::vector<bool> is_live(rows, true);
    std::vector<bool> may_be_found(rows, true);
    for (int row = 0; row < rows; row++) {
      if (round % 3 == 1) is_live[row] = random() % 4 != 0;
      if (round % 2 == 1) may_be_found[row] = round % 4 == 1 ? random() % 2 == 0 : random() % 60 == 0;
    }
    std::vector<bool> both(rows);
    for (int row = 0; row < rows; row++) both[row] = is_live[row] && may_be_found[row];
    const std::vector<uint64_t> filter = bitmap_of(both);
    const auto a = build_field(texts[0], 1, is_live, random, one);
    const auto b = build_field(texts[1], 1, is_live, random, one);
    const auto cut_a = build_field(texts[0], 4, is_live, random, three);
    const auto cut_b = build_field(texts[1], 3, is_live, random, three);
    const QueryOracle oracle(texts, is_live);
    std::vector<Query> queries;
    for (int i = 0; i < 60; i++) queries.push_back(random_query(random, 1 + i % 4, words, 2));
    for (const int64_t k : {1, 10, 20000}) {
      LexicalOptions options;
      options.k = k;
      options.filter_bits = round % 3 == 1 || round % 2 == 1 ? filter.data() : nullptr;
      options.factor_k1_plus_1 = round % 4 == 3;
      if (round % 5 == 1) options.k1 = 0;
      if (round % 5 == 2) options.b = 1;
      const LexicalResult whole = lexical_search(Fields{&a->index, &b->index}, queries, options, one);
      const LexicalResult cut = lexical_search(Fields{&cut_a->index, &cut_b->index}, queries, options, three);
      options.prune = false;
      const LexicalResult unpruned = lexical_search(Fields{&a->index, &cut_b->index}, queries, options, three);
      options.prune = true;
      for (size_t i = 0; i < queries.size(); i++) {
        const auto expected = oracle.search(queries[i], options, may_be_found);
        check_equal(whole, i, expected);
        check_equal(cut, i, expected);
        check_equal(unpruned, i, expected);
        if (i % 10 == 0) check_equal(lexical_search(Fields{&cut_a->index, &b->index}, {queries[i]}, options, three), 0, expected);
      }
    }
  }
}

TEST("query: sets of rows, counts and least scores have the oracle's hits, for any threads, shards, filter and deletions") {
  std::mt19937 random(11);
  ThreadPool one(1);
  ThreadPool three(3);
  for (int round = 0; round < (check::small() ? 3 : 8); round++) {
    const int words = round % 2 == 0 ? 12 : 60;
    const int rows = round % 3 == 2 ? 150 : 9000 + static_cast<int>(random() % 4000);
    const std::vector<Texts> texts = {random_texts(random, rows, words, 6), random_texts(random, rows, words, 15)};
    std::vector<bool> is_live(rows, true), may_be_found(rows, true), both(rows);
    for (int row = 0; row < rows; row++) {
      if (round % 3 == 1) is_live[row] = random() % 4 != 0;
      if (round % 2 == 1) may_be_found[row] = random() % 3 == 0;
      both[row] = is_live[row] && may_be_found[row];
    }
    const std::vector<uint64_t> filter = bitmap_of(both);
    const auto a = build_field(texts[0], 3, is_live, random, one);
    const auto b = build_field(texts[1], 2, is_live, random, one);
    const QueryOracle oracle(texts, is_live);
    std::vector<RowBits> sets;
    for (const int every : {1, 2, 97, 5000}) {
      std::vector<bool> members(rows);
      for (int row = 0; row < rows; row++) members[row] = random() % every == 0;
      sets.push_back(std::make_shared<std::vector<uint64_t>>(bitmap_of(members)));
    }
    sets.push_back(std::make_shared<std::vector<uint64_t>>(sets[0]->size()));
    for (int i = 0; i < 40; i++) {
      const Query query = random_query(random, 1 + i % 4, words, 2, sets);
      QueryOptions options;
      options.filter_bits = filter.data();
      options.k = rows;
      std::vector<Hit> expected = oracle.search(query, options, may_be_found);
      if (i % 2 == 0 && !expected.empty()) {
        options.min_score = expected[random() % expected.size()].score;
        expected.erase(std::find_if(expected.begin(), expected.end(), [&](const Hit& hit) { return hit.score < options.min_score; }),
                       expected.end());
      }
      const auto total = static_cast<int64_t>(expected.size());
      for (const int64_t k : {3, 20000}) {
        options.k = k;
        const std::vector<Hit> best(expected.begin(), expected.begin() + std::min(k, total));
        for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{100}, total, total + 1}) {
          options.count = count;
          for (ThreadPool* pool : {&one, &three}) {
            const LexicalResult found = lexical_search(Fields{&a->index, &b->index}, {query}, options, *pool);
            check_equal(found, 0, best);
            CHECK_EQUAL(found.totals.size(), size_t{count > 0 ? 1u : 0u});
            if (count > 0) CHECK_EQUAL(found.totals[0], std::min(total, count + 1));
          }
        }
      }
    }
  }
}

TEST("query: a single query over many windows and threads has the oracle's hits for a small k") {
  std::mt19937 random(31);
  ThreadPool one(1);
  ThreadPool three(3);
  const int rows = check::small() ? 40000 : 100000;
  const std::vector<Texts> texts = {random_texts(random, rows, 400, 5), random_texts(random, rows, 3000, 20)};
  const std::vector<bool> all(rows, true);
  const auto a = build_field(texts[0], 1, all, random, three);
  const auto b = build_field(texts[1], 2, all, random, three);
  const QueryOracle oracle(texts, all);
  const auto word = [&](int words) { return "w" + std::to_string(random() % words); };
  for (int round = 0; round < (check::small() ? 2 : 5); round++) {
    std::vector<Query> title, body, mixed;
    for (int i = 0; i < 6; i++) {
      const std::string one_word = word(i < 2 ? 5 : 300);
      title.push_back(term(one_word, 0));
      body.push_back(term(one_word, 1));
      mixed.push_back(best_of({term(one_word, 0, 2), term(one_word, 1)}, 0.3f));
    }
    Query filtered = any_of(body, 1);
    filtered.filter = {term(word(20), 0)};
    filtered.must_not = {term(word(20), 1)};
    Query required = all_of({term(word(5), 1), term(word(30), 0)});
    required.should = body;
    std::vector<Query> nested;
    for (int i = 0; i < 4; i++) nested.push_back(any_of({term(word(50), 0), term(word(50), 1), term(word(500), 1)}, 2, 1.5f));
    const std::vector<Query> queries = {best_of({any_of(title), any_of(body)}),
                                        best_of({any_of(title, 0, 2), any_of(body)}, 0.7f),
                                        any_of(mixed),
                                        filtered,
                                        required,
                                        any_of(nested),
                                        any_of(body, 3),
                                        random_query(random, 4, 300, 2)};
    LexicalOptions options;
    options.k = round % 2 == 0 ? 10 : 200;
    for (const Query& query : queries) {
      const auto expected = oracle.search(query, options, all);
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, one), 0, expected);
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, three), 0, expected);
    }
  }
}

TEST("query: clauses whose scores differ by more than float64 can add exactly are summed in the query's order") {
  std::mt19937 random(37);
  ThreadPool pool(2);
  const std::vector<Texts> texts = {random_texts(random, 700, 20, 30), random_texts(random, 700, 20, 10)};
  const std::vector<bool> all(700, true);
  const auto a = build_field(texts[0], 2, all, random, pool);
  const auto b = build_field(texts[1], 3, all, random, pool);
  const QueryOracle oracle(texts, all);
  std::vector<Query> clauses;
  for (int i = 0; i < 12; i++) {
    const std::string word = "w" + std::to_string(i);
    clauses.push_back(any_of({term(word, 0), term(word, 1)}, 0, std::ldexp(1.37f, 6 * (i % 7))));
  }
  for (const int64_t k : {3, 700}) {
    LexicalOptions options;
    options.k = k;
    for (const Query& query : {any_of(clauses), any_of(clauses, 2), all_of({clauses[0], clauses[6], clauses[3]})}) {
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, pool), 0, oracle.search(query, options, all));
    }
  }
}

TEST("query: a tree that is a bag of words has the same hits as the search for bags of words") {
  std::mt19937 random(41);
  ThreadPool pool(2);
  const Texts texts = random_texts(random, 2000, 100, 30);
  const auto field = build_field(texts, 3, std::vector<bool>(2000, true), random, pool);
  LexicalOptions options;
  for (int round = 0; round < 20; round++) {
    std::string text;
    std::vector<Query> clauses;
    for (int i = 0; i < 8; i++) {
      const std::string word = "w" + std::to_string(random() % 30);
      text += word + " ";
      clauses.push_back(term(word));
    }
    const LexicalResult bag = lexical_search(field->index, {bag_of_words(Analyser::kWhitespace, text)}, options, pool);
    const LexicalResult tree = lexical_search(Fields{&field->index}, {any_of(clauses)}, options, pool);
    CHECK(bag.rows == tree.rows);
    CHECK(bag.scores == tree.scores);
    CHECK_EQUAL(bag.stats[0].postings_decoded, tree.stats[0].postings_decoded);
  }
}
