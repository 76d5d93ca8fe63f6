// The first pass of a search. It scans every block of codes once for all queries of a batch.
#pragma once
#include <vector>

#include "dense/search/query_state.hpp"
#include "dense/search/search_context.hpp"

namespace trawl {

// Packs the queries for each mean. Offers each row that a query cannot drop to the state of that query. Skips shards without
// codes. queries_f64: states.size() x dimension, divided by their norms for cosine.
void scan_codes(const SearchContext& context, const double* queries_f64, std::vector<QueryState>& states);

}  // namespace trawl
