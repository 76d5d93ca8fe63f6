#include "lexical_texts.hpp"

namespace lexical_test {

Texts random_texts(std::mt19937& random, int count, int words, int length) {
  std::vector<double> weights;
  for (int w = 0; w < words; w++) weights.push_back(1.0 / (w + 1));
  std::discrete_distribution<int> word(weights.begin(), weights.end());
  Texts texts;
  for (int i = 0; i < count; i++) {
    std::string text;
    const int n = std::uniform_int_distribution<int>(0, length)(random);
    for (int j = 0; j < n; j++) text += "w" + std::to_string(word(random)) + " ";
    if (i > 0 && i % 5 == 0) text = texts[i - 1];
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

std::vector<uint64_t> bitmap_of(const std::vector<bool>& rows) {
  std::vector<uint64_t> bitmap((rows.size() + 63) / 64, 0);
  for (size_t i = 0; i < rows.size(); i++) {
    if (rows[i]) bitmap[i / 64] |= uint64_t{1} << i % 64;
  }
  return bitmap;
}

std::vector<std::string> terms_of(Analyser analyser, std::string_view text) {
  Terms terms;
  analyse(analyser, text, terms);
  std::vector<std::string> result;
  for (size_t i = 0; i < terms.size(); i++) result.emplace_back(terms[i]);
  return result;
}

BagOfWords random_bag(std::mt19937& random, int words) {
  std::string text;
  const int n = std::uniform_int_distribution<int>(1, 12)(random);
  for (int j = 0; j < n; j++) text += "w" + std::to_string(std::uniform_int_distribution<int>(0, words)(random)) + " ";
  return bag_of_words(Analyser::kWhitespace, text);
}

void check_equal(const LexicalResult& result, int64_t query, const std::vector<Hit>& expected) {
  CHECK_EQUAL(result.counts[query], static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); i++) {
    CHECK_EQUAL(result.rows[query * result.k + i], expected[i].row);
    CHECK_EQUAL(bits_of(result.scores[query * result.k + i]), bits_of(expected[i].score));
  }
}

}  // namespace lexical_test
