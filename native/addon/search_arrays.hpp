// The arrays that every search returns.
#pragma once
#include <napi.h>

#include <cstring>

namespace trawl_addon {

// {counts, rows, scores}: the counts of the queries, and k places for each query. Scores is the JavaScript array of the type of
// found.scores.
template <typename Scores, typename Found>
Napi::Object search_arrays(Napi::Env env, const Found& found) {
  const auto count = static_cast<size_t>(found.queries);
  const size_t cells = count * static_cast<size_t>(found.k);
  auto counts = Napi::Uint32Array::New(env, count);
  auto rows = Napi::Float64Array::New(env, cells);
  auto scores = Scores::New(env, cells);
  for (size_t q = 0; q < count; ++q) counts[q] = static_cast<uint32_t>(found.counts[q]);
  for (size_t i = 0; i < cells; ++i) rows[i] = static_cast<double>(found.rows[i]);
  static_assert(sizeof *scores.Data() == sizeof found.scores[0], "the arrays have one type of score");
  if (cells > 0) std::memcpy(scores.Data(), found.scores.data(), cells * sizeof found.scores[0]);
  Napi::Object result = Napi::Object::New(env);
  result.Set("counts", counts);
  result.Set("rows", rows);
  result.Set("scores", scores);
  return result;
}

}  // namespace trawl_addon
