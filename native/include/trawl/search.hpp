// Exact top-k. The answer for a query has the same bits whatever batch it came in, whatever the threads, shards
// and instruction set: codes only decide which rows need not be scored, and docs/certificate.md proves they decide right.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "trawl/index.hpp"
#include "trawl/isa.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

// When a query that has a screen goes without it: the answer is the same, only the time differs.
struct ScreenPolicy {
  bool use = true;
  // Rows that are looked at by their codes first, for a threshold to begin with; a 128th of all where that is more. Shards
  // of fewer than four times as many are searched without their screen.
  int64_t sample_rows = 4096;
  // The screen is tried on a part of those rows: a query for which it keeps more than this share does not use it.
  double trial_share = 0.125;
  // A query that leaves more than this share of all rows to be settled one by one goes on without the screen; the share
  // grows where fewer than 16 queries are asked together, whose pass is bound by memory.
  double settled_share = 1.0 / 512;
};

struct SearchOptions {
  int64_t k = 10;                              // >= 1; more than the rows there are returns them all
  const uint64_t* filter_bits = nullptr;       // bit (row & 63) of word (row >> 6), per global row; null: all rows
  const std::atomic<bool>* cancel = nullptr;   // set to true from any thread: the search throws kCancelled soon after
  const Kernels* kernels = nullptr;            // null: select_kernels()
  // Candidates kept per query before those below the threshold are dropped and the buffer grows (16 bytes each) ...
  int64_t candidate_capacity = 1024;
  // ... and the size past which the query gives the certificate up and scans the exact rows: never wrong, only slower.
  int64_t candidate_limit = 65536;
  // Queries that share one pass over the codes. More: fewer passes, more memory (8*dimension bytes each and up).
  int64_t batch_queries = 512;
  ScreenPolicy screen;
};

struct QueryStats {
  int64_t survivors = 0;      // rows that the codes could not drop
  int64_t settled = 0;        // rows that a screen left to the codes once the threshold had risen
  int64_t rescored = 0;       // exact rows read and scored
  int64_t buffer_growths = 0;
  bool full_scan = false;     // the certificate was given up (too many candidates) or there were no codes
};

struct SearchResult {
  int64_t queries = 0, k = 0;       // k as asked for: the row length of the arrays
  std::vector<int64_t> counts;      // [queries] results present: min(k, rows that pass the filter)
  std::vector<int64_t> rows;        // [queries * k] global rows, nearest first; -1 past counts
  std::vector<double> scores;       // [queries * k] LARGER IS NEARER (squared L2 negated); 0 past counts.
                                    // Each fits float32: round it once for output.
  std::vector<QueryStats> stats;    // [queries]
};

// queries: float32, row-major, query_count x index.dimension().
// Throws kNotFinite (query and column), kScoreOverflow (query), kBadArgument, kCancelled.
SearchResult search(const Index& index, const float* queries_f32, int64_t query_count,
                    const SearchOptions& options, ThreadPool& pool);

// The same answer without codes, from every exact row. Reads rows*dimension*4 bytes a batch.
SearchResult exact_search(const Index& index, const float* queries_f32, int64_t query_count,
                          const SearchOptions& options, ThreadPool& pool);

}  // namespace trawl
