// Helpers of the tests of BM25: random texts, files of them, and the comparison of hits.
#pragma once
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "oracle.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_index.hpp"

namespace lexical_test {

using namespace trawl::lexical;
using trawl::ErrorCode;
using trawl::ThreadPool;
using Texts = std::vector<std::string>;

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// Words with the skew of natural language: the frequency of word w is about 1 / (w + 1). Some texts equal the text before them, and
// some repeat one word.
Texts random_texts(std::mt19937& random, int count, int words, int length);

// Writes the file of one shard.
void build(const std::string& path, const Texts& texts, Analyser analyser, ThreadPool& pool);

struct Shards {
  oracle::TempDir directory;
  LexicalIndex index;
};

// An index of the texts, split at white space, in shards of about equal size.
std::unique_ptr<Shards> build_shards(const Texts& texts, int shards, ThreadPool& pool);

// Bit `row % 64` of word `row / 64` is set for the rows that are true.
std::vector<uint64_t> bitmap_of(const std::vector<bool>& rows);

std::vector<std::string> terms_of(Analyser analyser, std::string_view text);

// A bag of up to 12 words.
BagOfWords random_bag(std::mt19937& random, int words);

struct Hit {
  float score;
  int64_t row;
};

// Checks rows and bits of the scores of one query.
void check_equal(const LexicalResult& result, int64_t query, const std::vector<Hit>& expected);

}  // namespace lexical_test
