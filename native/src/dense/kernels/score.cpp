#include "dense/kernels/score.hpp"

#include <cmath>
#include <cstring>

namespace trawl {

namespace {

inline double load_f64(const uint8_t* row, int64_t column) {
  float value;
  std::memcpy(&value, row + 4 * column, 4);
  return value;
}

}  // namespace

double norm_in_order_f64(const float* values, int64_t dimension) {
  double sum = 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(values);
  for (int64_t j = 0; j < dimension; ++j) {
    const double value = load_f64(bytes, j);
    sum += value * value;
  }
  return std::sqrt(sum);
}

void sum_rows_serial(bool squared_difference, const double* const* queries, int query_count, const uint8_t* const* rows, int64_t dimension,
                     double* sums) {
  for (int query = 0; query < query_count; ++query, sums += kScoreLanes) {
    const double* q = queries[query];
    double sum[kScoreLanes] = {};
    if (squared_difference) {
      for (int64_t j = 0; j < dimension; ++j) {
        for (int lane = 0; lane < kScoreLanes; ++lane) {
          const double difference = q[j] - load_f64(rows[lane], j);
          const double square = difference * difference;
          sum[lane] += square;
        }
      }
    } else {
      for (int64_t j = 0; j < dimension; ++j) {
        for (int lane = 0; lane < kScoreLanes; ++lane) sum[lane] += q[j] * load_f64(rows[lane], j);
      }
    }
    std::memcpy(sums, sum, sizeof sum);
  }
}

void score_rows(Metric metric, const Kernels& kernels, const ScoreQuery* queries, int query_count, const uint8_t* const* rows,
                int64_t dimension, double* scores) {
  const double* values[kMaxSumQueries] = {};
  for (int query = 0; query < query_count; ++query) values[query] = queries[query].values_f64;
  kernels.sum_rows(metric == Metric::kSquaredL2, values, query_count, rows, dimension, scores);
  if (metric == Metric::kSquaredL2) {
    for (int i = 0; i < query_count * kScoreLanes; ++i) scores[i] *= -0.5;
  }
  if (metric != Metric::kCosine) return;
  double square[kScoreLanes] = {};
  for (int64_t j = 0; j < dimension; ++j) {
    for (int lane = 0; lane < kScoreLanes; ++lane) {
      const double value = load_f64(rows[lane], j);
      square[lane] += value * value;
    }
  }
  for (int i = 0; i < query_count * kScoreLanes; ++i) {
    const double norm = std::sqrt(square[i % kScoreLanes]), query_norm = queries[i / kScoreLanes].norm_f64;
    // The norm of a row that is not finite is neither, and then neither is its score, even for a query without direction.
    const bool without_direction = std::isfinite(norm) && (query_norm == 0 || norm == 0);
    scores[i] = without_direction ? 0.0 : scores[i] / query_norm / norm;
  }
}

}  // namespace trawl
