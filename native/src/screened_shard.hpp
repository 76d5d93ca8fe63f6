// One shard through its screen.
#pragma once
#include <vector>

#include "block_scan.hpp"

namespace trawl {

// As scan_codes, for a shard with a screen. in_codes: the queries packed for the shard's codes, of which `mean` is the mean;
// queries: the same, unpacked. Which rows are looked at by what depends on timing; the answer does not.
void scan_screened(const Shard& shard, const PackMean& mean, const PackedQueries& in_codes, const double* queries,
                   const States& states, const SearchOptions& options, const Kernels& kernels, ThreadPool& pool);

}  // namespace trawl
