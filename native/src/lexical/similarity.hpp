// The same scores as Lucene's BM25Similarity since 8.4, bit for bit: https://github.com/apache/lucene, BM25Similarity.java and
// SmallFloat.java. Each operation is one IEEE float32 operation, rounded to nearest, so compile without contraction to FMA.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "trawl/lexical_index.hpp"

namespace trawl::lexical {

// Encodes a passage's length in tokens in one byte: exact below 40; above, the length minus 24 is rounded down to four
// significant bits.
inline uint8_t length_code(uint64_t length) {
  if (length < 40) return static_cast<uint8_t>(length);
  const uint64_t above = length - 24;
  const int leading = 63 - __builtin_clzll(above);
  const int shift = leading - 3;
  return static_cast<uint8_t>(24 + (8 * (shift + 1) + ((above >> shift) & 7)));
}

inline uint32_t decode_length(uint8_t code) {
  if (code < 40) return code;
  const uint32_t above = code - 24u;
  return 24u + (((above & 7) + 8) << (above / 8 - 1));
}

struct Bm25 {
  float k1 = 0.9f;
  float b = 0.4f;
  // Elasticsearch's similarity multiplies the boost by 1 + k1; Lucene's does not since 8.0.
  bool factor_k1_plus_1 = false;
};

// 1 / (k1 * ((1 - b) + b * length / average)) for each length code.
using InverseNorms = std::array<float, 256>;

inline InverseNorms inverse_norms(const Bm25& bm25, const LexicalCounts& field) {
  const auto average = static_cast<float>(static_cast<double>(field.tokens) / static_cast<double>(field.documents));
  InverseNorms inverse;
  for (int code = 0; code < 256; code++) {
    const auto length = static_cast<float>(decode_length(static_cast<uint8_t>(code)));
    inverse[code] = 1.0f / (bm25.k1 * ((1.0f - bm25.b) + (bm25.b * length) / average));
  }
  return inverse;
}

inline float inverse_document_frequency(uint64_t document_frequency, uint64_t documents) {
  const auto df = static_cast<double>(document_frequency);
  const auto n = static_cast<double>(documents);
  return static_cast<float>(std::log(1.0 + (n - df + 0.5) / (df + 0.5)));
}

inline float term_weight(const Bm25& bm25, float boost, float idf) {
  return (bm25.factor_k1_plus_1 ? boost * (1.0f + bm25.k1) : boost) * idf;
}

// The score rises with tf and falls with the length code. This holds in float32 too, because every operation is monotone.
inline float term_score(float weight, uint32_t tf, float inverse_norm) {
  return weight - weight / (1.0f + static_cast<float>(tf) * inverse_norm);
}

}  // namespace trawl::lexical
