// The BM25 core: scores with Lucene's bits, searches compared with an exhaustive oracle, damaged files.
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <random>

#include "lexical/bound_pairs.hpp"
#include "lexical/porter_stem.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/similarity.hpp"
#include "lexical/tokenizer.hpp"
#include "lexical/window_sums.hpp"
#include "oracle.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_index.hpp"
#include "trawl/lexical_verify.hpp"

using namespace trawl::lexical;
using trawl::ErrorCode;
using trawl::ThreadPool;

namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

std::vector<std::string> terms_of(Analyser analyser, std::string_view text) {
  Terms terms;
  analyse(analyser, text, terms);
  std::vector<std::string> result;
  for (size_t i = 0; i < terms.size(); i++) result.emplace_back(terms[i]);
  return result;
}

std::string joined(Analyser analyser, std::string_view text) {
  std::string result;
  for (const std::string& term : terms_of(analyser, text)) result += (result.empty() ? "" : "|") + term;
  return result;
}

using Texts = std::vector<std::string>;

// Words with the skew of natural language: the frequency of word w is about 1 / (w + 1).
Texts random_texts(std::mt19937& random, int count, int words, int length) {
  std::vector<double> weights;
  for (int w = 0; w < words; w++) weights.push_back(1.0 / (w + 1));
  std::discrete_distribution<int> word(weights.begin(), weights.end());
  Texts texts;
  for (int i = 0; i < count; i++) {
    std::string text;
    const int n = std::uniform_int_distribution<int>(0, length)(random);
    for (int j = 0; j < n; j++) text += "w" + std::to_string(word(random)) + " ";
    // Some passages are equal, and some repeat one word.
    if (i > 0 && i % 7 == 0) text = texts[i - 1];
    if (i % 31 == 5) {
      for (int j = 0; j < 300; j++) text += "w1 ";
    }
    texts.push_back(text);
  }
  return texts;
}

void build(const std::string& path, const Texts& texts, Analyser analyser, ThreadPool& pool) {
  std::string all;
  std::vector<uint64_t> ends;
  for (const std::string& text : texts) {
    all += text;
    ends.push_back(all.size());
  }
  LexicalBuilder builder(path, analyser, pool);
  builder.add(all.data(), ends.data(), ends.size());
  builder.finish();
}

struct Shards {
  oracle::TempDir directory;
  LexicalIndex index;
};

std::unique_ptr<Shards> build_shards(const Texts& texts, int shards, ThreadPool& pool) {
  auto built = std::make_unique<Shards>();
  for (int s = 0; s < shards; s++) {
    const size_t first = texts.size() * s / shards;
    const size_t end = texts.size() * (s + 1) / shards;
    const std::string path = built->directory.file();
    build(path, Texts(texts.begin() + first, texts.begin() + end), Analyser::kWhitespace, pool);
    built->index.add_shard(path);
  }
  return built;
}

struct Hit {
  float score;
  int64_t row;
};

// Counts the terms directly from the texts. It shares only the analyser and the score of one term with the engine.
class Oracle {
 public:
  explicit Oracle(const Texts& texts) {
    for (const std::string& text : texts) {
      const auto terms = terms_of(Analyser::kWhitespace, text);
      std::map<std::string, uint32_t> frequencies;
      for (const std::string& term : terms) frequencies[term]++;
      for (const auto& [term, tf] : frequencies) postings_[term].push_back({static_cast<int64_t>(lengths_.size()), tf});
      documents_ += terms.empty() ? 0 : 1;
      tokens_ += terms.size();
      lengths_.push_back(terms.size());
    }
  }

  // All rows that have a term of the query, best first.
  std::vector<Hit> search(const BagOfWords& query, const LexicalOptions& options,
                          const std::vector<bool>* may_be_found = nullptr) const {
    std::vector<Hit> hits;
    if (documents_ == 0) return hits;
    const Bm25 bm25 = {options.k1, options.b, options.factor_k1_plus_1};
    const InverseNorms inverse = inverse_norms(bm25, {documents_, tokens_});
    std::map<int64_t, double> sums;
    for (const WeightedTerm& term : query) {
      const auto found = postings_.find(term.term);
      if (found == postings_.end()) continue;
      const float idf = inverse_document_frequency(found->second.size(), documents_);
      for (const auto& [row, tf] : found->second) {
        sums[row] += term_score(term_weight(bm25, term.boost, idf), tf, inverse[length_code(lengths_[row])]);
      }
    }
    for (const auto& [row, sum] : sums) {
      if (may_be_found == nullptr || (*may_be_found)[row]) hits.push_back({static_cast<float>(sum), row});
    }
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
    if (static_cast<int64_t>(hits.size()) > options.k) hits.resize(options.k);
    return hits;
  }

 private:
  uint64_t documents_ = 0;
  uint64_t tokens_ = 0;
  std::map<std::string, std::vector<std::pair<int64_t, uint32_t>>> postings_;
  std::vector<uint64_t> lengths_;
};

void check_equal(const LexicalResult& result, int64_t query, const std::vector<Hit>& expected) {
  CHECK_EQUAL(result.counts[query], static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); i++) {
    CHECK_EQUAL(result.rows[query * result.k + i], expected[i].row);
    CHECK_EQUAL(bits_of(result.scores[query * result.k + i]), bits_of(expected[i].score));
  }
}

BagOfWords random_query(std::mt19937& random, int words) {
  std::string text;
  const int n = std::uniform_int_distribution<int>(1, 12)(random);
  for (int j = 0; j < n; j++) text += "w" + std::to_string(std::uniform_int_distribution<int>(0, words)(random)) + " ";
  return bag_of_words(Analyser::kWhitespace, text);
}

}  // namespace

TEST("lexical: a term's score has Lucene's bits at known points") {
  const InverseNorms lucene = inverse_norms({0.9f, 0.4f, false}, {79482, 4045202});
  const float idf = inverse_document_frequency(123, 79482);
  CHECK_EQUAL(bits_of(idf), 0x40cef222u);
  CHECK_EQUAL(bits_of(lucene[length_code(50)]), 0x3f8f3aafu);
  CHECK_EQUAL(bits_of(term_score(term_weight({0.9f, 0.4f, false}, 1, idf), 1, lucene[length_code(50)])), 0x405a90cdu);
  CHECK_EQUAL(bits_of(term_score(term_weight({0.9f, 0.4f, false}, 2, idf), 3, lucene[length_code(50)])), 0x411f72a3u);
  const InverseNorms longer = inverse_norms({1.2f, 0.75f, false}, {79482, 4045202});
  CHECK_EQUAL(bits_of(longer[length_code(41)]), 0x3f7e222au);
  CHECK_EQUAL(bits_of(term_score(idf, 2, longer[length_code(41)])), 0x4089a080u);
}

TEST("lexical: a length is encoded in Lucene's byte, rounded down") {
  const std::pair<uint64_t, std::pair<int, uint32_t>> known[] = {
      {0, {0, 0}},      {39, {39, 39}},   {41, {40, 40}},      {55, {47, 54}},        {59, {48, 56}},
      {87, {55, 84}},   {151, {63, 144}}, {279, {71, 264}},    {535, {79, 504}},      {1000, {87, 984}},
      {100000, {140, 98328}}, {2147483647, {255, 2013265944}}};
  for (const auto& [length, expected] : known) {
    CHECK_EQUAL(static_cast<int>(length_code(length)), expected.first);
    CHECK_EQUAL(decode_length(length_code(length)), expected.second);
  }
}

TEST("lexical: texts have the same terms as in Lucene") {
  CHECK_EQUAL(joined(Analyser::kStandard, "don't O'Neil\u2019s U.S.A. 1,000.50 foo@bar.com"),
              "don't|o'neil\u2019s|u.s.a|1,000.50|foo|bar.com");
  CHECK_EQUAL(joined(Analyser::kStandard, "\u6211\u7231\u5317 \u6771\u4eac\u30bf\u30ef\u30fc\u306f"), "\u6211|\u7231|\u5317|\u6771|\u4eac|\u30bf\u30ef\u30fc|\u306f");
  CHECK_EQUAL(joined(Analyser::kStandard, "\u03a3\u0391\u03a3 \u0130"), "\u03c3\u03b1\u03c3|i");
  CHECK_EQUAL(joined(Analyser::kEnglish, "The Running of O'Neil\u2019S dogs"), "run|o'neil|dog");
  CHECK_EQUAL(joined(Analyser::kEnglish, "xies eed eeds sses byyed yyyed skyyed"), "xi|eed|eed|ss|by|yy|sky");
  CHECK_EQUAL(joined(Analyser::kCjk, "\u5317\u4eac\u5929 x \u5317"), "\u5317\u4eac|\u4eac\u5929|x|\u5317");
  CHECK_EQUAL(joined(Analyser::kWhitespace, " a\tB\u3000c "), "a|B|c");
  CHECK_EQUAL(joined(Analyser::kEnglish, "the of and"), "");
  CHECK_EQUAL(joined(Analyser::kStandard, std::string("\xff\xc0\xe2\x82") + "a"), "a");
  CHECK_EQUAL(terms_of(Analyser::kStandard, std::string(300, 'x')).size(), size_t{2});
  CHECK_EQUAL(terms_of(Analyser::kStandard, std::string(300, 'x'))[0].size(), size_t{255});
}

TEST("lexical: ASCII words are the automaton's tokens in lower case") {
  std::mt19937 random(31);
  const std::string_view pieces[] = {"a", "Z", "the", "Word", "LONGERword", "7", "1990", " ", "  ", ". ", ", ", ".", ",", ":", ";", "'", "'s ", "\"",
                                     ".\"", "_", "#", "*", "@", "[", "`", "{", "/", "\x7f", "\n", std::string_view("\0", 1), "\u00e9", "\u0301",
                                     "\u4eac", "1\ufe0f\u20e3", "\xff"};
  for (int round = 0; round < 20000; round++) {
    std::string text;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; i++) text += pieces[random() % std::size(pieces)];
    if (round % 50 == 0) text += std::string(50 + random() % 250, 'X') + "y";
    std::vector<std::string> expected;
    std::vector<std::string> found;
    Token token;
    const auto add = [&text](std::vector<std::string>& tokens, const Token& added) {
      tokens.push_back(text.substr(added.begin, added.end - added.begin));
      for (char& byte : tokens.back()) byte = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
    };
    for (size_t at = 0; next_token(text, at, token); at = token.end) add(expected, token);
    for_each_token(
        text, [&](const AsciiWord& word) { found.emplace_back(word.bytes, word.size); }, [&](const Token& other) { add(found, other); });
    CHECK(found == expected);
  }
}

TEST("lexical: ASCII words have the same stems as words of other characters") {
  std::mt19937 random(37);
  const std::string_view endings[] = {"s", "sses", "ies", "eed", "ed", "ing", "y", "ational", "tional", "enci", "anci", "izer", "bli", "alli", "entli",
                                      "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti",
                                      "logi", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able",
                                      "ible", "ant", "ement", "ment", "ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
                                      "e", "ll", "at", "bl", "iz", "ss", "zz"};
  for (int round = 0; round < 200000; round++) {
    std::string word;
    const int letters = static_cast<int>(random() % (round % 100 == 0 ? 60 : 6));
    for (int i = 0; i < letters; i++) word += "aeiouybcdlstwxz0'"[random() % 17];
    const int count = static_cast<int>(random() % 4);
    for (int i = 0; i < count; i++) word += endings[random() % std::size(endings)];
    std::string expected = word;
    porter_stem_any(expected);
    porter_stem(word);
    CHECK_EQUAL(word, expected);
  }
}

TEST("lexical: a block of postings is decoded to the encoded values, for any gaps and frequencies") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; round++) {
    const uint32_t count = round % 3 == 0 ? 128 : 1 + random() % 128;
    const int gap_bits = random() % 25;
    const int tf_bits = random() % 12;
    std::vector<Posting> postings;
    int64_t previous = round % 2 == 0 ? -1 : static_cast<int64_t>(random() % 1000000);
    const int64_t before = previous;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t tf = 1 + random() % (1u << tf_bits);
      if (random() % 50 == 0) tf = 1 + random() % 100000;
      previous += 1 + random() % (1u << gap_bits);
      postings.push_back({static_cast<uint32_t>(previous), tf});
    }
    if (previous >= 0xFFFFFFFEll) continue;
    std::vector<uint8_t> bytes;
    encode_block(postings.data(), count, before, bytes);
    const size_t size = bytes.size();
    bytes.resize(size + kBlockPadding);
    uint32_t rows[128], tfs[128];
    CHECK(decode_block(bytes.data(), bytes.data() + size, count, before, 0xFFFFFFFF, rows, tfs));
    for (uint32_t i = 0; i < count; i++) {
      CHECK_EQUAL(rows[i], postings[i].row);
      CHECK_EQUAL(tfs[i], postings[i].tf);
    }
    CHECK(!decode_block(bytes.data(), bytes.data() + size - 1, count, before, 0xFFFFFFFF, rows, tfs));
    CHECK(!decode_block(bytes.data(), bytes.data() + size, count, before, static_cast<uint32_t>(previous), rows, tfs));
  }
}

TEST("lexical: every processor collects the same rows and sums of a window and clears them") {
  std::mt19937 random(41);
  for (int round = 0; round < 300; round++) {
    WindowSums window;
    const uint32_t count = round % 3 == 0 ? kWindowRows : 1 + random() % kWindowRows;
    const uint32_t begin = random();
    const double too_small = round % 4 == 0 ? kNoSum : round % 4 == 1 ? 0.0 : 1.0;
    std::vector<uint32_t> rows;
    std::vector<double> sums;
    const uint32_t step = 1 + random() % (round % 2 == 0 ? 4 : 300);
    for (uint32_t at = random() % step; at < count; at += 1 + random() % step) {
      window.sums[at] = random() % 5 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 500;
      window.touched[at / kGroupRows] = 1;
      if (too_small != 0 ? window.sums[at] <= too_small : !std::signbit(too_small) && window.sums[at] == 0) continue;
      rows.push_back(begin + at);
      sums.push_back(window.sums[at]);
    }
    WindowSums same = window;
    Candidates chosen;
    Candidates serial;
    collect(window, begin, count, too_small, chosen);
    collect_serial(same, begin, count, too_small, serial);
    for (const Candidates* candidates : {&chosen, &serial}) {
      CHECK_EQUAL(candidates->count, rows.size());
      CHECK(std::equal(rows.begin(), rows.end(), candidates->rows.begin()));
      CHECK(std::equal(sums.begin(), sums.end(), candidates->sums.begin()));
    }
    for (const WindowSums* cleared : {&window, &same}) {
      CHECK(std::all_of(cleared->sums.begin(), cleared->sums.end(), [](double sum) { return sum == 0 && std::signbit(sum); }));
      CHECK(std::all_of(cleared->touched.begin(), cleared->touched.end(), [](uint8_t touched) { return touched == 0; }));
    }
  }
}

TEST("lexical: four pairs dominate all added postings") {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; round++) {
    std::vector<std::pair<uint32_t, uint8_t>> added;
    BoundCollector collector;
    for (int i = 0; i < 128; i++) {
      added.push_back({1 + random() % (round % 5 == 0 ? 1000 : 12), static_cast<uint8_t>(1 + random() % 120)});
      collector.add(added.back().first, added.back().second);
    }
    const BoundPairs pairs = collector.pairs();
    for (const auto& [tf, code] : added) CHECK(dominates(pairs, tf, code));
  }
}

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
    for (int i = 0; i < 8; i++) queries.push_back(random_query(random, words));
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
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.score_bits < b.score_bits; });
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
  const Texts texts = random_texts(random, check::small() ? 40000 : 90000, 3000, 20);
  const auto built = build_shards(texts, 1, two);
  const Oracle oracle(texts);
  for (int round = 0; round < 6; round++) {
    const BagOfWords query = random_query(random, 300);
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
  check_equal(lexical_search(built->index, {query}, options, pool), 0,
              Oracle(texts).search(query, options));
}

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

TEST("lexical: deleted rows are subtracted, so scores equal those of an index without these rows") {
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
    const BagOfWords query = random_query(random, 60);
    auto expected = oracle.search(query, options);
    for (Hit& hit : expected) hit.row = row_of[hit.row];
    check_equal(lexical_search(index, {query}, options, pool), 0, expected);
  }
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

TEST("lexical: queries of any size and content end without an error") {
  ThreadPool pool(2);
  const auto built = build_shards({"a b c", "a", "", "b a"}, 1, pool);
  std::string many;
  for (int i = 0; i < 100000; i++) many += "x" + std::to_string(i) + " ";
  std::string same;
  for (int i = 0; i < 1000; i++) same += "a ";
  LexicalOptions options;
  const LexicalResult result = lexical_search(
      built->index,
      {bag_of_words(Analyser::kWhitespace, many), bag_of_words(Analyser::kWhitespace, same), {},
       bag_of_words(Analyser::kWhitespace, std::string("\0\x01\xff", 3)), bag_of_words(Analyser::kEnglish, "the of"),
       bag_of_words(Analyser::kStandard, std::string(1 << 20, 'y'))},
      options, pool);
  CHECK_EQUAL(result.counts[0], int64_t{0});
  CHECK_EQUAL(result.counts[1], int64_t{3});
  for (int i = 2; i < 6; i++) CHECK_EQUAL(result.counts[i], int64_t{0});
  LexicalIndex empty;
  CHECK_EQUAL(lexical_search(empty, {{{"a", 1}}}, options, pool).counts[0], int64_t{0});
}
