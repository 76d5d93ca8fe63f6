// The pass over the codes of a shard on a GPU.
#pragma once
#include <vector>

#include "dense/search/block_scan.hpp"

namespace trawl {

// Does the same as a CodesScan over all blocks. queries_f64: the queries of `packed` before packing.
void scan_on_gpu(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& packed,
                 const double* queries_f64, const States& states);

}  // namespace trawl
