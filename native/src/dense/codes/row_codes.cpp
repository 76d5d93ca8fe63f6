#include "dense/codes/row_codes.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "dense/codes/rounding.hpp"
#include "dense/kernels/score.hpp"
#include "trawl/codes_file.hpp"

namespace trawl {

int64_t first_not_finite(const float* values, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    uint32_t bits;
    std::memcpy(&bits, values + j, 4);
    if ((bits & 0x7F800000u) == 0x7F800000u) return j;
  }
  return -1;
}

RowCoder::RowCoder(Metric metric, const std::vector<float>& mean, uint64_t sign_seed)
    : metric_(metric),
      dimension_(static_cast<int64_t>(mean.size())),
      padded_(padded_dimension(dimension_)),
      kappa_(kappa_f64(padded_)),
      mean_f64_(padded_),
      rotation_(padded_, sign_seed) {
  for (int64_t j = 0; j < dimension_; ++j) mean_f64_[j] = mean[j];
}

float quantise(const double* values, int64_t padded, int8_t* codes) {
  double largest = 0;
  for (int64_t j = 0; j < padded; ++j) largest = std::fmax(largest, std::fabs(values[j]));
  if (largest == 0) {
    std::memset(codes, 0, padded);
    return 0;
  }
  float scale = static_cast<float>(largest / 127);
  if (scale < kSmallestScale) scale = kSmallestScale;
  const double steps = 1.0 / scale;             // may round in any way, because the error is measured afterwards
  constexpr double kRoundToInteger = 0x1.8p52;  // adding and subtracting it rounds to nearest even, as rint does
  for (int64_t j = 0; j < padded; ++j) {
    double step = values[j] * steps;
    step = step > 127 ? 127 : step;
    step = step < -127 ? -127 : step;
    codes[j] = static_cast<int8_t>(static_cast<int32_t>((step + kRoundToInteger) - kRoundToInteger));
  }
  return scale;
}

double quantisation_loss(const double* values, int64_t padded, float scale, const int8_t* codes, double kappa) {
  const double s = scale;
  return std::sqrt(sum_in_eight_f64(padded,
                                    [&](size_t j) {
                                      const double error = values[j] - s * codes[j];  // s*code is exact
                                      return error * error;
                                    })) *
         (1 + kappa);
}

int32_t sum_of_codes(const int8_t* codes, int64_t padded) {
  int32_t sum = 0;
  for (int64_t j = 0; j < padded; ++j) sum += codes[j];
  return sum;
}

std::string check_codes(const int8_t* codes, int64_t padded, float scale) {
  for (int64_t j = 0; j < padded; ++j) {
    if (codes[j] == -128) return "code -128 at column " + std::to_string(j) + "; codes lie in [-127, 127]";
  }
  if (!(scale == 0 || (scale >= kSmallestScale && std::isfinite(scale)))) {
    return "scale " + std::to_string(scale) + "; it must be 0 or at least 2^-126";
  }
  return "";
}

std::string number_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

RowCoder::Centred RowCoder::centre(const float* row, double* difference) const {
  const double* mean = mean_f64_.data();
  if (metric_ == Metric::kCosine) {
    // bounds() adds kappa to both bounds for the rounding of the unit row.
    const double norm = norm_in_order_f64(row, dimension_);
    for (int64_t j = 0; j < dimension_; ++j) {
      difference[j] = (norm > 0 ? static_cast<double>(row[j]) / norm : 0.0) - mean[j];
    }
  } else {
    for (int64_t j = 0; j < dimension_; ++j) difference[j] = static_cast<double>(row[j]) - mean[j];
  }
  for (int64_t j = dimension_; j < padded_; ++j) difference[j] = 0;

  Centred centred;
  centred.norm_f64 = norm_up_f64(difference, padded_, kappa_);
  centred.bias_f64 = metric_ == Metric::kSquaredL2
                         ? -0.5 * sum_in_eight_f64(padded_, [&](size_t j) { return difference[j] * difference[j]; })
                         : sum_in_eight_f64(padded_, [&](size_t j) { return mean[j] * difference[j]; });
  return centred;
}

RowCoder::Centred RowCoder::centre_and_rotate(const float* row, Scratch& scratch) const {
  const Centred centred = centre(row, scratch.difference_f64.data());
  double* rotated = scratch.rotated_f64.data();
  std::memcpy(rotated, scratch.difference_f64.data(), padded_ * sizeof(double));
  rotation_.apply(rotated);
  return centred;
}

RowStats RowCoder::bounds(const Centred& centred, float scale, const int8_t* codes, const Scratch& scratch) const {
  const double residual = quantisation_loss(scratch.rotated_f64.data(), padded_, scale, codes, kappa_) + kEta * centred.norm_f64;
  const double unit_rounding = metric_ == Metric::kCosine ? kappa_ : 0.0;
  return {scale, up32(residual + unit_rounding), up32(centred.norm_f64 + unit_rounding), sum_of_codes(codes, padded_), centred.bias_f64};
}

RowStats RowCoder::encode(const float* row, int8_t* codes, Scratch& scratch) const {
  const Centred centred = centre_and_rotate(row, scratch);
  const float scale = quantise(scratch.rotated_f64.data(), padded_, codes);
  const RowStats stats = bounds(centred, scale, codes, scratch);
  if (!std::isfinite(stats.residual_f32) || !std::isfinite(stats.norm_f32) || !std::isfinite(stats.bias_f64)) {
    std::memset(codes, 0, padded_);
    const float inf = std::numeric_limits<float>::infinity();
    return {0, inf, inf, 0, 0};
  }
  return stats;
}

std::string RowCoder::check(const float* row, const int8_t* codes, const RowStats& stored, Scratch& scratch) const {
  const int64_t column = first_not_finite(row, dimension_);
  if (column >= 0) return "the row is not finite at column " + std::to_string(column);
  const std::string unusable = check_codes(codes, padded_, stored.scale_f32);
  if (!unusable.empty()) return unusable;
  if (!std::isfinite(stored.bias_f64)) return "bias is not finite";
  const Centred centred = centre_and_rotate(row, scratch);
  const RowStats needed = bounds(centred, stored.scale_f32, codes, scratch);
  if (stored.code_sum_i32 != needed.code_sum_i32) {
    return "code sum " + std::to_string(stored.code_sum_i32) + ", but the codes sum to " + std::to_string(needed.code_sum_i32);
  }
  const auto text = number_text;
  // With infinite bounds all other numbers are valid, because the row is always rescored.
  if (std::isinf(stored.norm_f32) && stored.norm_f32 > 0 && std::isinf(stored.residual_f32) && stored.residual_f32 > 0) {
    return "";
  }
  if (!(stored.norm_f32 >= needed.norm_f32)) {
    return "norm bound " + text(stored.norm_f32) + " is below the needed " + text(needed.norm_f32);
  }
  if (!(stored.residual_f32 >= needed.residual_f32)) {
    return "residual bound " + text(stored.residual_f32) + " is below the needed " + text(needed.residual_f32);
  }
  // The order of summation is fixed, so a valid bias has the same bits.
  if (stored.bias_f64 != needed.bias_f64) {
    return "bias " + text(stored.bias_f64) + ", but the row's is " + text(needed.bias_f64);
  }
  return "";
}

}  // namespace trawl
