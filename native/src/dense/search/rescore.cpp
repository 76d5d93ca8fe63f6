#include "dense/search/rescore.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "dense/search/exact_scan.hpp"

namespace trawl {

namespace {

struct Located {
  const Shard* shard;
  int64_t local;
};

Located locate(const Index& index, int64_t row) {
  const auto& shards = index.shards();
  const auto after =
      std::upper_bound(shards.begin(), shards.end(), row, [](int64_t wanted, const Shard& shard) { return wanted < shard.first_row; });
  const Shard& shard = *(after - 1);
  return {&shard, row - shard.first_row};
}

// NaN first: a bound that is NaN excludes nothing, so the row must be scored.
bool read_before(const Candidate& a, const Candidate& b) {
  const bool a_nan = std::isnan(a.upper_f64), b_nan = std::isnan(b.upper_f64);
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a.upper_f64 != b.upper_f64) return a.upper_f64 > b.upper_f64;
  return a.row < b.row;
}

void prefetch(const Index& index, const Candidate* candidates, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Located at = locate(index, candidates[i].row);
    const uint8_t* bytes = at.shard->rows->bytes_in_place(at.local);
    for (int64_t b = 0; bytes != nullptr && b < at.shard->rows->row_bytes(); b += 64) __builtin_prefetch(bytes + b);
  }
}

}  // namespace

int64_t rescore(const SearchContext& context, QueryState& state, const ScoreQuery& query, TopK& top) {
  const Index& index = context.index;
  std::vector<Candidate>& candidates = state.candidates();
  std::sort(candidates.begin(), candidates.end(), read_before);
  RowLanes lanes(index.dimension());
  int64_t scored = 0;
  for (size_t next = 0; next < candidates.size();) {
    const double threshold = top.full() ? std::fmax(state.tau(), top.worst().score_f64) : state.tau();
    // Score rows of one shard together, because all lanes must have the same row type.
    const Shard* shard = nullptr;
    int64_t locals[kScoreLanes];
    int count = 0;
    const Candidate* const taken = candidates.data() + next;
    for (; next < candidates.size() && count < kScoreLanes; ++next) {
      if (candidates[next].upper_f64 < threshold) {
        next = candidates.size();
        break;
      }
      const Located at = locate(index, candidates[next].row);
      if (shard != nullptr && at.shard != shard) break;
      shard = at.shard;
      locals[count++] = at.local;
    }
    if (count == 0) break;
    prefetch(index, candidates.data() + next, std::min<size_t>(kScoreLanes, candidates.size() - next));
    lanes.load(*shard->rows, locals, count);
    double scores[kScoreLanes];
    score_rows(index.metric(), context.kernels, &query, 1, lanes.pointers(), index.dimension(), scores);
    for (int lane = 0; lane < count; ++lane) {
      if (!std::isfinite(scores[lane])) throw_row_not_finite(*shard->rows, locals[lane], shard->first_row + locals[lane]);
      // The bounds were proved for the row that the codes were made of.
      if (scores[lane] < taken[lane].lower_f64 || scores[lane] > taken[lane].upper_f64) {
        shard->rows->changed(locals[lane], "does not fit its codes (" + shard->codes->path() + ") in row " + std::to_string(locals[lane]));
      }
      top.push({scores[lane], shard->first_row + locals[lane]});
    }
    scored += count;
  }
  return scored;
}

}  // namespace trawl
