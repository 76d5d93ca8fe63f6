// The second pass: exact scores of one query's candidates.
#pragma once
#include "dense/kernels/score.hpp"
#include "dense/search/query_state.hpp"
#include "dense/search/search_context.hpp"
#include "dense/search/top_k.hpp"

namespace trawl {

// Scores candidates in order of falling upper bound. The exact scores raise the threshold, and the pass ends at the first upper
// bound below it. No other order reads fewer exact rows for the same bounds, apart from the last kScoreLanes - 1 rows. Returns
// the number of rows scored. `top` may already contain rows with exact scores.
int64_t rescore(const SearchContext& context, QueryState& state, const ScoreQuery& query, TopK& top);

}  // namespace trawl
