// Exact top-k search. The answer to a query has the same bits in every batch, with any number of threads and shards and any
// instruction set. Codes only exclude rows, and docs/certificate.md proves that no excluded row is in the answer.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "trawl/index.hpp"
#include "trawl/isa.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

// When a query uses the codes instead of the prefilter. The answer is the same, only the time differs.
struct PrefilterPolicy {
  bool use = true;
  bool always = false;  // also with as many queries and such fast instructions (AMX) that the codes alone are the faster way
  // The search first scans the codes of this many rows, or of 1/128 of the shard if that is more, to raise the threshold.
  // Shards with less than four times as many rows do not use their prefilter. Only rows that pass the filter count, here and below.
  int64_t sample_rows = 4096;
  // The prefilter is tried on some of these rows. If it keeps more than this share for a query, the query does not use it.
  double trial_share = 0.125;
  // A query that defers more than this share of the shard's rows switches to the codes. The share is larger if fewer than 16
  // queries switch, because memory limits the speed of their pass.
  double refined_share = 1.0 / 512;
};

class GpuCodes;  // gpu_codes.hpp

struct SearchOptions {
  int64_t k = 10;                             // >= 1; above the index's number of rows: all rows are returned
  const uint64_t* filter_bits = nullptr;      // bit (row & 63) of word (row >> 6), per global row; null: all rows.
                                              // Deleted rows are never returned.
  const std::atomic<bool>* cancel = nullptr;  // any thread may set it to true: the search then throws kCancelled soon
  const KernelChoice* kernels = nullptr;      // null: choose_kernels()
  // At this many candidates (16 bytes each), a query drops those below the threshold or grows its buffer ...
  int64_t candidate_capacity = 1024;
  // ... and at this many it scores every exact row instead: slower, with the same answer.
  int64_t candidate_limit = 0;  // 0: 65,536, or 2k if that is more
  // Queries that share one pass over the codes. More need fewer passes and more memory (at least 8*dimension bytes each).
  int64_t batch_queries = 512;
  PrefilterPolicy prefilter;
  const GpuCodes* gpu = nullptr;  // of this index: the row test runs on its GPU, without prefilters; the answer is the same.
                                  // If the GPU fails, searches with it run on the CPU from then on.
};

struct QueryStats {
  int64_t survivors = 0;  // rows that the codes kept
  int64_t refined = 0;    // rows that the prefilter deferred and whose codes were read later
  int64_t rescored = 0;   // exact rows read and scored
  int64_t buffer_growths = 0;
  bool full_scan = false;  // every exact row was scored: too many candidates, or no codes
};

struct SearchResult {
  int64_t queries = 0, k = 0;   // k: places of each query, min(k, rows of the index)
  std::vector<int64_t> counts;  // [queries] number of results: min(k, rows that pass the filter)
  std::vector<int64_t> rows;    // [queries * k] global rows, nearest first; -1 past counts
  std::vector<double> scores;   // [queries * k] LARGER IS NEARER (squared L2 negated); 0 past counts.
                                // Each fits float32: round it once for output.
  // [queries] the first hit whose score does not fit float32; the query then has no hits. -1: all fit.
  std::vector<int64_t> overflow_rows;
  std::vector<QueryStats> stats;  // [queries]
};

// queries: float32, row-major, query_count x index.dimension().
// Throws kNotFinite (query and column), kBadArgument, kCancelled.
SearchResult search(const Index& index, const float* queries_f32, int64_t query_count, const SearchOptions& options, ThreadPool& pool);

}  // namespace trawl
