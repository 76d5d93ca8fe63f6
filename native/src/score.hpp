// The score's definition: what "exact" means. See docs/certificate.md.
//
// Accumulator: float64, one chain a row, columns in index order, never reordered. Speed comes from running
// eight rows' chains side by side. Inner product: each product of two float32 values is exact in float64 (24 + 24 <= 53
// bits), so fused and separate multiply-add agree. Squared L2: the square is NOT exact, so this code must be compiled
// with -ffp-contract=off (score_test holds a case that a fused build fails).
// No overflow or underflow is possible for float32 input: |term| is 0 or in [2^-298, 2^258].
#pragma once
#include <cstdint>

#include "kernels.hpp"
#include "trawl/metric.hpp"

namespace trawl {

// Inside the engine larger is nearer and squared L2 is -1/2 of the distance, the quantity the codes estimate.
// external_score() gives the public value: minus the distance, +0 for an identical row. Both steps are exact.
inline double external_score(Metric metric, double internal_f64) {
  return metric == Metric::kSquaredL2 ? 2 * internal_f64 + 0.0 : internal_f64;
}

// A query in float64, with its norm (used by cosine only).
struct ScoreQuery {
  const double* values_f64;  // [dimension]
  double norm_f64;
};

// sqrt of the float64 sum of squares in index order; values_f32 may be unaligned.
double norm_in_order_f64(const float* values_f32, int64_t dimension);

// scores_f64[query][kScoreLanes] of rows, each float32[dimension] at any alignment; every lane must point at a row.
// queries <= kMaxSumQueries.
void score_rows(Metric metric, const Kernels& kernels, const ScoreQuery* queries, int query_count,
                const uint8_t* const* rows, int64_t dimension, double* scores_f64);

// SumRows in plain C++.
void sum_rows_serial(bool squared_difference, const double* const* queries_f64, int queries, const uint8_t* const* rows,
                     int64_t dimension, double* sums_f64);

}  // namespace trawl
