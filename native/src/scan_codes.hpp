// The first pass: every block of codes once, for all queries of a batch.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "query_pack.hpp"
#include "query_state.hpp"
#include "trawl/error.hpp"
#include "trawl/index.hpp"
#include "trawl/search.hpp"

namespace trawl {

// Packs the queries for each mean and offers every row that cannot be dropped to its query's state. Shards without
// codes are passed over. queries_f64: states.size() x dimension, divided by their norms for cosine.
void scan_codes(const Index& index, const double* queries_f64, std::vector<QueryState>& states,
                const SearchOptions& options, const Kernels& kernels, ThreadPool& pool);

// How many groups of a batch go to scan_groups; what is left goes to scan_rows.
inline int64_t groups_to_scan(const Kernels& kernels, int64_t queries) {
  return queries / kLanes + (queries % kLanes >= kernels.groups_from);
}

inline bool filter_has(const uint64_t* bits, int64_t row) {
  return bits == nullptr || (bits[row >> 6] >> (row & 63) & 1) != 0;
}
// Whether any bit of [first, first + count) is set.
bool filter_has_any(const uint64_t* bits, int64_t first, int64_t count);

inline void check_cancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::kCancelled, "the search was cancelled");
  }
}

}  // namespace trawl
