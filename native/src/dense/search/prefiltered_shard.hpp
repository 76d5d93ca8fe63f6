// Searches one shard through its prefilter.
#pragma once
#include "dense/search/block_scan.hpp"

namespace trawl {

// Does the same as scan_codes for a shard with a prefilter. codes_queries: the queries packed for the shard's codes with `mean`;
// queries: the same queries, unpacked. Which rows the prefilter drops and which the codes drop depends on timing; the answer does
// not.
void scan_prefiltered(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& codes_queries,
                      const double* queries, const States& states);

}  // namespace trawl
