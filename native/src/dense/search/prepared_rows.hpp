// The numbers of rows of the codes, prepared for the row test.
#pragma once
#include <cmath>

#include "dense/codes/query_pack.hpp"
#include "dense/codes/rounding.hpp"

namespace trawl {

// Writes the biases of `count` rows as float32 to bias_f32 and returns the rows' norms. It returns the given norms unless a row is
// untestable, and then norm_f32. The arrays have room for `count` rounded up to a multiple of 16.
inline const float* prepare_rows(const double* bias, const float* norm, const float* residual, int64_t count, const PackMean& mean,
                                 float* bias_f32, float* norm_f32) {
  const int64_t rows = (count + 15) / 16 * 16;
  row_test_biases(mean.metric, bias, norm, rows, mean.kappa, bias_f32);
  // One loop for each type, so that compilers vectorise them.
  int32_t untestable = 0;
  for (int64_t i = 0; i < rows; ++i) untestable |= !(norm[i] <= kMaxTestableNorm) | !(residual[i] <= kMaxTestableNorm);
  double largest_bias = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const double size = std::fabs(bias[i]);
    largest_bias = size > largest_bias ? size : largest_bias;
  }
  if (!untestable && largest_bias <= kMaxTestableBias) return norm;
  for (int64_t i = 0; i < rows; ++i) {
    const bool keep = row_untestable(bias[i], norm[i], residual[i]);
    norm_f32[i] = keep ? std::numeric_limits<float>::infinity() : norm[i];
    if (keep) bias_f32[i] = 0;
  }
  return norm_f32;
}

}  // namespace trawl
