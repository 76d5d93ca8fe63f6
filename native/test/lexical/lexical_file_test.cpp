// The files of BM25: equal bytes, and damaged files.
#include <cmath>
#include <random>

#include "lexical_texts.hpp"
#include "trawl/lexical_verify.hpp"

using namespace lexical_test;

TEST("lexical: the file has the same bytes for any number of threads, and the shards have the same statistics") {
  std::mt19937 random(19);
  const Texts texts = random_texts(random, 3000, 500, 60);
  ThreadPool one(1);
  ThreadPool four(4);
  oracle::TempDir directory;
  const std::string a = directory.file();
  const std::string b = directory.file();
  build(a, texts, Analyser::kEnglish, one);
  build(b, texts, Analyser::kEnglish, four);
  CHECK(oracle::read_file(a) == oracle::read_file(b));
  CHECK_EQUAL(verify_lexical(a), std::string());
}

TEST("lexical: invalid options and damaged files are refused") {
  std::mt19937 random(29);
  ThreadPool pool(1);
  const Texts texts = random_texts(random, 900, 40, 30);
  const auto built = build_shards(texts, 1, pool);
  LexicalOptions options;
  options.k = 0;
  CHECK_REFUSED(lexical_search(built->index, {{}}, options, pool), ErrorCode::kBadArgument, "k must be at least 1, but is 0");
  options.k = 1;
  options.k1 = -1;
  CHECK_REFUSED(lexical_search(built->index, {{}}, options, pool), ErrorCode::kBadArgument, "k1");
  options.k1 = 0.9f;
  options.b = std::nanf("");
  CHECK_REFUSED(lexical_search(built->index, {{}}, options, pool), ErrorCode::kBadArgument, "b must be from 0 to 1");
  options.b = 0.4f;
  CHECK_REFUSED(lexical_search(built->index, {{{"w1", -1}}}, options, pool), ErrorCode::kBadArgument, "boost");

  oracle::TempDir directory;
  const std::string whole = directory.file();
  build(whole, texts, Analyser::kWhitespace, pool);
  const std::vector<uint8_t> bytes = oracle::read_file(whole);
  const std::string damaged = directory.file();
  options.k = 20;
  const std::vector<BagOfWords> queries = {bag_of_words(Analyser::kWhitespace, "w0 w1 w2 w3 w17 w30")};
  const int tries = check::small() ? 200 : 1500;
  int unnoticed = 0;
  for (int i = 0; i < tries; i++) {
    std::vector<uint8_t> changed = bytes;
    const size_t at = random() % changed.size();
    changed[at] ^= 1 + random() % 255;
    if (i % 10 == 0) changed.resize(random() % changed.size());
    oracle::write_file(damaged, changed.data(), changed.size());
    // A search must end, with or without an error. Verification must find the damage unless the byte lies between two sections.
    try {
      LexicalIndex index;
      index.add_shard(damaged);
      lexical_search(index, queries, options, pool);
    } catch (const trawl::Error& error) {
      CHECK(error.code == ErrorCode::kBadFile || error.code == ErrorCode::kReadFailed);
    }
    try {
      if (verify_lexical(damaged).empty()) unnoticed++;
    } catch (const trawl::Error&) {
    }
  }
  CHECK(unnoticed <= tries / 20);
}
