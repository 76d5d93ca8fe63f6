// The second pass: exact scores of one query's candidates.
#pragma once
#include "query_state.hpp"
#include "score.hpp"
#include "top_k.hpp"
#include "trawl/index.hpp"

namespace trawl {

// Reads candidates in order of falling upper bound, the threshold rising with the exact scores, and stops where the
// next upper bound is below it: no order needs fewer exact rows for these bounds (but for the last handful, which
// are read kScoreLanes at a time). Returns how many were scored. top may hold exactly scored rows already.
int64_t rescore(const Index& index, QueryState& state, const ScoreQuery& query, const Kernels& kernels, TopK& top);

}  // namespace trawl
