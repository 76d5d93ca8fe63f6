// The numbers of rows of the codes, prepared for the row test.
#pragma once
#include <cmath>

#include "dense/codes/query_pack.hpp"
#include "dense/codes/rounding.hpp"

namespace trawl {

// Writes the biases of `count` rows for the row test to test_bias_f32, and returns their norms for it: norm_f32 itself, or test_norm_f32 if
// a row is untestable. The arrays have room for `count` rounded up to a multiple of 16.
inline const float* prepare_rows(const double* bias_f64, const float* norm_f32, const float* residual_f32, int64_t count,
                                 const PackMean& mean, float* test_bias_f32, float* test_norm_f32) {
  const int64_t rows = (count + 15) / 16 * 16;
  row_test_biases(mean.metric, bias_f64, norm_f32, rows, mean.kappa, test_bias_f32);
  // One loop for each type, so that compilers vectorise them.
  int32_t untestable = 0;
  for (int64_t i = 0; i < rows; ++i) untestable |= !(norm_f32[i] <= kMaxTestableNorm) | !(residual_f32[i] <= kMaxTestableNorm);
  double largest_bias = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const double magnitude = std::fabs(bias_f64[i]);
    largest_bias = magnitude > largest_bias ? magnitude : largest_bias;
  }
  if (!untestable && largest_bias <= kMaxTestableBias) return norm_f32;
  for (int64_t i = 0; i < rows; ++i) {
    const bool kept = row_untestable(bias_f64[i], norm_f32[i], residual_f32[i]);
    test_norm_f32[i] = kept ? std::numeric_limits<float>::infinity() : norm_f32[i];
    if (kept) test_bias_f32[i] = 0;
  }
  return test_norm_f32;
}

}  // namespace trawl
