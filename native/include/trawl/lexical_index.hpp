// BM25 search over inverted indexes. Scores equal Lucene's bit for bit.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trawl/analyser.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl::lexical {

class LexicalFile;
struct TermPostings;

// The counts of a field over the live rows of all shards. Scores depend on them, so they do not depend on the shards.
struct LexicalCounts {
  uint64_t documents = 0;  // rows with at least one token
  uint64_t tokens = 0;     // sum of the exact lengths of all rows
};

// Shards of one field as one index. A shard's first row follows the last row of the shard before it. Immutable after add_shard()
// and set_deleted(), so threads may share it.
class LexicalIndex {
 public:
  LexicalIndex();
  ~LexicalIndex();

  // Opens a shard's file. Throws kReadFailed, kBadFile, and kBadArgument if its analyser differs from the earlier shards' analyser.
  void add_shard(const std::string& path);

  // Opens an index of the texts of all deleted rows, in any order, and subtracts its counts. Call it after the last add_shard().
  // Throws kReadFailed, and kBadFile, also if the analyser differs.
  void set_deleted(const std::string& path);

  void require_unchanged() const;  // throws kFileChanged if a file has changed since it was opened

  int64_t rows() const;
  Analyser analyser() const;
  LexicalCounts counts() const;
  uint64_t document_frequency(std::string_view term) const;  // number of live rows with the term
  // The same, and sets `postings[i]` to the term's place in shard i. `postings` has room for all shards.
  uint64_t document_frequency(std::string_view term, TermPostings* postings) const;
  int64_t mapped_bytes() const;
  uint8_t longest_code() const;  // largest length code of all rows

  struct Shard;
  const std::vector<Shard>& shards() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A term of a query with the sum of its boosts. The terms of a query are in the order of their first appearance.
struct WeightedTerm {
  std::string term;
  float boost = 1;
};
using BagOfWords = std::vector<WeightedTerm>;

// Analyses a query; a term that occurs n times gets boost n.
BagOfWords bag_of_words(Analyser analyser, std::string_view query);

struct LexicalOptions {
  int64_t k = 10;
  float k1 = 0.9f;
  float b = 0.4f;
  bool factor_k1_plus_1 = false;          // multiply scores by k1 + 1, as Elasticsearch does
  const uint64_t* filter_bits = nullptr;  // bit (row & 63) of word (row >> 6), per global row; null: all rows
  const std::atomic<bool>* cancel = nullptr;
  bool prune = true;  // false: score every posting (for tests and for counting matches)
};

struct LexicalStats {
  uint64_t postings = 0;          // postings of the query's terms
  uint64_t postings_decoded = 0;  // postings in the blocks that the search decoded
};

struct LexicalResult {
  int64_t queries = 0, k = 0;   // k: places of each query, min(k, rows of the index)
  std::vector<int64_t> counts;  // [queries] number of hits
  std::vector<int64_t> rows;    // [queries * k] global rows, best first, of equal scores the lower row; -1 past counts
  std::vector<float> scores;    // [queries * k] the same float32 values as Lucene's, larger is better; 0 past counts
  std::vector<LexicalStats> stats;
  std::vector<int64_t> totals;  // [queries] matching rows, if the search counted them; else empty
};

// The k best rows of each query among the rows that contain at least one of its terms. The answer to a query has the same bits for
// any batch, threads, shards and pruning. Throws kBadArgument (k, k1, b, boosts), kBadFile, kCancelled.
LexicalResult lexical_search(const LexicalIndex& index, const std::vector<BagOfWords>& queries, const LexicalOptions& options,
                             ThreadPool& pool);

// A term of a query that a row has.
struct ExplainedTerm {
  uint32_t term = 0;  // its position in the query
  float score = 0;    // its part of the row's score
};

// The parts of scores. For each row, in the order of `rows`, the terms of the query that the row has, in the order of the query;
// `rows` may be unsorted and may repeat. Stops once it has found more than `most` terms in all rows; the answer is then incomplete.
// Throws kBadArgument (options, rows), kBadFile, kCancelled.
std::vector<std::vector<ExplainedTerm>> explain(const LexicalIndex& index, const BagOfWords& query, const std::vector<int64_t>& rows,
                                                const LexicalOptions& options, int64_t most = INT64_MAX);

}  // namespace trawl::lexical
