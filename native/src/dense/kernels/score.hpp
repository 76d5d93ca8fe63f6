// The score of a vector, with the same bits as src/engine/vectors/score.ts, which defines it. See docs/certificate.md.
//
// Each row has one float64 accumulator. Columns are added in index order and never reordered; for speed, the sums of eight rows
// run side by side. Inner product: each product of two float32 values is exact in float64 (24 + 24 <= 53 bits), so fused and
// separate multiply-adds agree. Squared L2: the square is NOT exact, so this code must be compiled with -ffp-contract=off.
// Float32 input cannot overflow or underflow: |term| is 0 or in [2^-298, 2^258].
#pragma once
#include <cstdint>

#include "dense/kernels/kernels.hpp"
#include "trawl/metric.hpp"

namespace trawl {

// Inside the engine, the score of squared L2 is -1/2 of the squared distance, because the codes estimate that. external_score()
// returns the public score: minus the squared distance, +0 for an identical row. Both steps are exact.
inline double external_score(Metric metric, double internal_f64) {
  return metric == Metric::kSquaredL2 ? 2 * internal_f64 + 0.0 : internal_f64;
}

// A query in float64, with its norm (only for cosine).
struct ScoreQuery {
  const double* values_f64;  // [dimension]
  double norm_f64;
};

// Square root of the float64 sum of squares in index order. values_f32 may be unaligned.
double norm_in_order_f64(const float* values_f32, int64_t dimension);

// Writes scores_f64[query][kScoreLanes]. Each row is float32[dimension] at any alignment, and every lane must point to a row.
// query_count <= kMaxSumQueries.
void score_rows(Metric metric, const Kernels& kernels, const ScoreQuery* queries, int query_count, const uint8_t* const* rows,
                int64_t dimension, double* scores_f64);

// Kernels::sum_rows in portable C++.
void sum_rows_serial(bool squared_difference, const double* const* queries_f64, int queries, const uint8_t* const* rows, int64_t dimension,
                     double* sums_f64);

}  // namespace trawl
