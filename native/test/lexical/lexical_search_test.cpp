// Searches for bags of words, compared with an exhaustive oracle.
#include <cmath>
#include <random>

#include "lexical/decoded_blocks.hpp"
#include "lexical/similarity.hpp"
#include "lexical_oracle.hpp"
#include "lexical_queries.hpp"

using namespace lexical_test;

TEST("lexical: search gives the exhaustive answer for any k, threads, shards, filter, batch and pruning") {
  std::mt19937 random(11);
  ThreadPool one(1);
  ThreadPool three(3);
  const int rounds = check::small() ? 4 : 14;
  for (int round = 0; round < rounds; round++) {
    const int words = round % 3 == 0 ? 30 : 800;
    const Texts texts = random_texts(random, 300 + static_cast<int>(random() % 2500), words, round % 4 == 0 ? 8 : 80);
    const auto single = build_shards(texts, 1, one);
    const auto several = build_shards(texts, 1 + random() % 6, three);
    const Oracle oracle(texts);
    std::vector<uint64_t> filter((texts.size() + 63) / 64, 0);
    std::vector<bool> may_be_found(texts.size(), true);
    const bool filtered = round % 2 == 1;
    if (filtered) {
      for (size_t i = 0; i < texts.size(); i++) {
        may_be_found[i] = random() % 3 != 0;
        if (may_be_found[i]) filter[i / 64] |= uint64_t{1} << i % 64;
      }
    }
    std::vector<BagOfWords> queries;
    for (int i = 0; i < 8; i++) queries.push_back(random_bag(random, words));
    queries.push_back({});
    queries.push_back({{"unknown", 1}});
    queries[1][0].boost = 2.5f;
    queries[2][0].boost = 0;
    for (const int64_t k : {1, 3, 10, 100, 4000}) {
      LexicalOptions options;
      options.k = k;
      options.filter_bits = filtered ? filter.data() : nullptr;
      if (round % 3 == 1) options.k1 = 0;
      if (round % 3 == 2) options.b = 1;
      options.factor_k1_plus_1 = round % 4 == 3;
      const LexicalResult pruned = lexical_search(single->index, queries, options, one);
      const LexicalResult threaded = lexical_search(several->index, queries, options, three);
      options.prune = false;
      const LexicalResult all = lexical_search(several->index, queries, options, one);
      options.prune = true;
      for (size_t i = 0; i < queries.size(); i++) {
        const auto expected = oracle.search(queries[i], options, &may_be_found);
        check_equal(pruned, i, expected);
        check_equal(threaded, i, expected);
        check_equal(all, i, expected);
        check_equal(lexical_search(several->index, {queries[i]}, options, three), 0, expected);
      }
    }
  }
}

TEST("lexical: a filter that keeps any share of the rows gives the exhaustive answer, by looking its rows up or by reading lists") {
  std::mt19937 random(37);
  ThreadPool pool(2);
  const size_t count = check::small() ? 6000 : 40000;
  const int words = 60;
  Texts texts = random_texts(random, static_cast<int>(count), words, 12);
  // A term in every row, so that narrow filters look up their rows, and one in few rows, so that some windows have no posting.
  for (size_t i = 0; i < count; i++) texts[i] += i % 2000 == 7 ? " always rare" : " always";
  const auto built = build_shards(texts, 2, pool);
  const Oracle oracle(texts);
  const std::vector<BagOfWords> queries = {bag_of_words(Analyser::kWhitespace, "always w0 w1"),
                                           bag_of_words(Analyser::kWhitespace, "w0 w1 w2 w30"),
                                           bag_of_words(Analyser::kWhitespace, "rare"),
                                           bag_of_words(Analyser::kWhitespace, "rare always w59"),
                                           {{"always", 0}, {"w1", 1}},
                                           random_bag(random, words)};
  for (const double share : {0.0, 0.0005, 0.01, 0.1, 0.5, 0.95}) {
    std::vector<uint64_t> filter((count + 63) / 64, 0);
    std::vector<bool> may_be_found(count, false);
    for (size_t i = 0; i < count; i++) {
      // A stretch without any row, and one with all.
      const bool all = share > 0 && i / 5000 == 3;
      if (i / 5000 == 1 || (!all && random() % 1000000 >= share * 1000000)) continue;
      may_be_found[i] = true;
      filter[i / 64] |= uint64_t{1} << i % 64;
    }
    for (const int64_t k : {1, 10, 3000}) {
      LexicalOptions options;
      options.k = k;
      options.filter_bits = filter.data();
      const LexicalResult found = lexical_search(built->index, queries, options, pool);
      options.prune = false;
      const LexicalResult all = lexical_search(built->index, queries, options, pool);
      for (size_t i = 0; i < queries.size(); i++) {
        const auto expected = oracle.search(queries[i], options, &may_be_found);
        check_equal(found, i, expected);
        check_equal(all, i, expected);
      }
      // Few rows are looked up, so few blocks are decoded.
      if (share == 0.0005 && k == 1) CHECK(found.stats[0].postings_decoded < all.stats[0].postings_decoded);
    }
  }
}

TEST("lexical: a row that is better only in the last bit of its score is found if its block's bound equals that score") {
  // Two blocks of one term, a window apart. The best score of the second block is the next float above the first block's best.
  constexpr int kBlock = 128;
  constexpr int kBetween = 20000;
  constexpr uint64_t kTokens = 400000;
  const Bm25 bm25;
  const InverseNorms inverse = inverse_norms(bm25, {2 * kBlock + kBetween + 1, kTokens});
  const float weight = term_weight(bm25, 1, inverse_document_frequency(2 * kBlock, 2 * kBlock + kBetween + 1));
  struct Candidate {
    uint32_t score_bits;
    uint32_t tf;
    uint32_t length;
  };
  std::vector<Candidate> candidates;
  for (int code = 2; code < 90; code++) {
    for (uint32_t tf = 2; tf <= std::min(250u, decode_length(code)); tf++) {
      candidates.push_back({bits_of(term_score(weight, tf, inverse[code])), tf, decode_length(code)});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.score_bits < b.score_bits; });
  ThreadPool pool(1);
  int tried = 0;
  for (size_t i = 0; i + 1 < candidates.size() && tried < 5; i++) {
    const Candidate& worse = candidates[i];
    const Candidate& better = candidates[i + 1];
    if (better.score_bits != worse.score_bits + 1) continue;
    tried++;
    Texts texts;
    uint64_t tokens = 0;
    const auto add = [&](const std::string& term, uint32_t tf, uint64_t length) {
      std::string text;
      for (uint64_t j = 0; j < length; j++) text += j < tf ? term + " " : "z ";
      texts.push_back(text);
      tokens += length;
    };
    for (const Candidate& best : {worse, better}) {
      for (int j = 0; j < kBlock; j++) {
        if (j == 60) {
          add("x", best.tf, best.length);
        } else {
          add("x", 1, 600);
        }
      }
      if (texts.size() == kBlock) {
        for (int j = 0; j < kBetween; j++) add("y", 1, 1);
      }
    }
    add("y", 1, kTokens - tokens);
    const auto built = build_shards(texts, 1, pool);
    LexicalOptions options;
    options.k = 1;
    const LexicalResult result = lexical_search(built->index, {{{"x", 1}}}, options, pool);
    CHECK_EQUAL(result.rows[0], int64_t{kBlock + kBetween + 60});
    CHECK_EQUAL(bits_of(result.scores[0]), better.score_bits);
  }
  CHECK(tried > 0);
}

TEST("lexical: a single query over many windows and threads has the oracle's answer") {
  std::mt19937 random(13);
  ThreadPool one(1);
  ThreadPool two(2);
  // At least 2^15 rows for each thread, so that both search.
  const Texts texts = random_texts(random, check::small() ? 66000 : 90000, 3000, 20);
  const auto built = build_shards(texts, 1, two);
  const Oracle oracle(texts);
  for (int round = 0; round < 6; round++) {
    const BagOfWords query = random_bag(random, 300);
    LexicalOptions options;
    options.k = round % 2 == 0 ? 10 : 500;
    const auto expected = oracle.search(query, options);
    check_equal(lexical_search(built->index, {query}, options, two), 0, expected);
    check_equal(lexical_search(built->index, {query}, options, one), 0, expected);
  }
}

TEST("lexical: weights that differ by more than float64 can add exactly are summed in the order of the query") {
  std::mt19937 random(17);
  ThreadPool pool(1);
  const Texts texts = random_texts(random, 600, 20, 30);
  const auto built = build_shards(texts, 2, pool);
  BagOfWords query;
  for (int i = 0; i < 12; i++) query.push_back({"w" + std::to_string(i), std::ldexp(1.37f, 5 * (i % 7))});
  LexicalOptions options;
  options.k = 600;
  check_equal(lexical_search(built->index, {query}, options, pool), 0, Oracle(texts).search(query, options));
}

TEST("lexical: deleted rows are subtracted, so scores are the same as in an index without these rows") {
  std::mt19937 random(23);
  ThreadPool pool(2);
  const Texts texts = random_texts(random, 700, 60, 40);
  oracle::TempDir directory;
  const std::string path = directory.file();
  build(path, texts, Analyser::kWhitespace, pool);
  Texts live;
  std::vector<int64_t> row_of;
  Texts deleted;
  std::vector<uint64_t> bitmap((texts.size() + 63) / 64, 0);
  for (size_t i = 0; i < texts.size(); i++) {
    if (random() % 4 != 0) {
      live.push_back(texts[i]);
      row_of.push_back(static_cast<int64_t>(i));
      bitmap[i / 64] |= uint64_t{1} << i % 64;
      continue;
    }
    deleted.push_back(texts[i]);
  }
  const std::string deleted_path = directory.file();
  build(deleted_path, deleted, Analyser::kWhitespace, pool);
  const Oracle oracle(live);
  LexicalIndex index;
  index.add_shard(path);
  index.set_deleted(deleted_path);
  LexicalOptions options;
  options.k = 50;
  options.filter_bits = bitmap.data();
  for (int round = 0; round < 10; round++) {
    const BagOfWords query = random_bag(random, 60);
    auto expected = oracle.search(query, options);
    for (Hit& hit : expected) hit.row = row_of[hit.row];
    check_equal(lexical_search(index, {query}, options, pool), 0, expected);
  }
}

TEST("lexical: a query of more known words than cursors may hold decoded blocks gives the exhaustive answer") {
  // Most words are in several windows, and some in several blocks, so cursors decode blocks again that they have lost.
  const int words = static_cast<int>(DecodedBlocks::kMost) + (check::small() ? 200 : 3000);
  std::mt19937 random(83);
  Texts texts(40000);
  for (std::string& text : texts) {
    for (int i = 0; i < 6; i++) text += "w" + std::to_string(random() % words) + " ";
    if (random() % 20 == 0) text += "w" + std::to_string(random() % 40) + " w1 w1 ";
  }
  ThreadPool pool(2);
  const auto built = build_shards(texts, 2, pool);
  const Oracle oracle(texts);
  BagOfWords query;
  std::vector<Query> clauses;
  for (int w = 0; w < words; w++) {
    query.push_back({"w" + std::to_string(w), 1});
    clauses.push_back(term(query.back().term));
  }
  Query composed = any_of(clauses);
  composed.filter = {of_type(QueryType::kMatchAll)};
  composed.minimum_should_match = 1;
  for (const int64_t k : {10, 1000}) {
    LexicalOptions options;
    options.k = k;
    const auto expected = oracle.search(query, options);
    for (const bool prune : {true, false}) {
      options.prune = prune;
      const LexicalResult found = lexical_search(built->index, {query}, options, pool);
      check_equal(found, 0, expected);
      CHECK(found.stats[0].postings_decoded <= found.stats[0].postings);
    }
    check_equal(lexical_search({&built->index}, {composed}, options, pool), 0, expected);
  }
}

TEST("lexical: queries of any size and content end without an error") {
  ThreadPool pool(2);
  const auto built = build_shards({"a b c", "a", "", "b a"}, 1, pool);
  std::string many;
  for (int i = 0; i < 100000; i++) many += "x" + std::to_string(i) + " ";
  std::string same;
  for (int i = 0; i < 1000; i++) same += "a ";
  LexicalOptions options;
  const LexicalResult result = lexical_search(built->index,
                                              {bag_of_words(Analyser::kWhitespace, many),
                                               bag_of_words(Analyser::kWhitespace, same),
                                               {},
                                               bag_of_words(Analyser::kWhitespace, std::string("\0\x01\xff", 3)),
                                               bag_of_words(Analyser::kEnglish, "the of"),
                                               bag_of_words(Analyser::kStandard, std::string(1 << 20, 'y'))},
                                              options, pool);
  CHECK_EQUAL(result.counts[0], int64_t{0});
  CHECK_EQUAL(result.counts[1], int64_t{3});
  for (int i = 2; i < 6; i++) CHECK_EQUAL(result.counts[i], int64_t{0});
  LexicalIndex empty;
  CHECK_EQUAL(lexical_search(empty, {{{"a", 1}}}, options, pool).counts[0], int64_t{0});
}
