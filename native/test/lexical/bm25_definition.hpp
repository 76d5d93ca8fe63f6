// BM25 from its definition in Lucene 9 (BM25Similarity, SmallFloat, WhitespaceAnalyzer), written without the engine's code, for the
// oracles. Each operation of Lucene is one in float: here it is done in double and rounded to float, which gives the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace bm25_definition {

// The words of an ASCII text.
inline std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

// SmallFloat.byte4ToInt(SmallFloat.intToByte4(length)): lengths below 40 are exact; of a larger one the four highest bits of
// (length - 24) stay.
inline uint64_t stored_length(uint64_t length) {
  if (length < 40) return length;
  uint64_t unit = 1;
  while ((length - 24) / unit >= 16) unit *= 2;
  return 24 + (length - 24) / unit * unit;
}

// The counts of a field that the score of a term depends on.
struct Field {
  uint64_t documents = 0;  // that have a word
  uint64_t tokens = 0;
};

struct Parameters {
  float k1, b;
  bool factor_k1_plus_1;  // LegacyBM25Similarity, which Elasticsearch uses
};

// idf * boost * tf / (tf + k1 * (1 - b + b * length / average)), in the form that Lucene computes.
inline float score(const Parameters& parameters, const Field& field, uint64_t documents_with_term, float boost, uint32_t tf,
                   uint64_t length) {
  const auto rounded = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  const auto n = static_cast<double>(field.documents), df = static_cast<double>(documents_with_term);
  const double k1 = parameters.k1, b = parameters.b;
  const double idf = rounded(std::log(1 + (n - df + 0.5) / (df + 0.5)));
  const double weight = rounded((parameters.factor_k1_plus_1 ? rounded(boost * rounded(1 + k1)) : boost) * idf);
  const double average = rounded(static_cast<double>(field.tokens) / n);
  const double share = rounded(rounded(b * rounded(static_cast<double>(stored_length(length)))) / average);
  const double norm = rounded(1 / rounded(k1 * rounded(rounded(1 - b) + share)));
  return static_cast<float>(weight - rounded(weight / rounded(1 + rounded(tf * norm))));
}

}  // namespace bm25_definition
