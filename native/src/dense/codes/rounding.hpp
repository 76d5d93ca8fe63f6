// The error constants and the directed roundings of docs/certificate.md. u = 2^-53, w = 2^-24.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace trawl {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// kappa: twice the largest relative error of a sum of D terms, its root, and the few operations around them.
inline double kappa_f64(int64_t padded_dimension) { return std::ldexp(static_cast<double>(padded_dimension + 32), -52); }
// eta: centring, 8 butterfly steps and the difference from the codes have an error of at most 12u of the norm; 2^-48 = 32u.
constexpr double kEta = 0x1p-48;

constexpr float kSmallestScale = 0x1p-126f;  // the smallest normal float32, so products with it have full precision

// Smallest float32 >= value, at least 2^-126 unless value <= 0; +inf above the largest float32. NaN stays NaN.
inline float up32(double value) {
  if (value > 0 && value < 0x1p-126) return kSmallestScale;
  const float near = static_cast<float>(value);
  return static_cast<double>(near) < value ? std::nextafter(near, std::numeric_limits<float>::infinity()) : near;
}

// Largest float32 <= value.
inline float down32(double value) {
  const float near = static_cast<float>(value);
  return static_cast<double>(near) > value ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near;
}

// Sums in eight interleaved float64 chains, then pairwise. The order is fixed, so the bits are the same on every machine, and
// compilers can vectorise it. count must be a multiple of 8.
template <typename Term>
inline double sum_in_eight_f64(size_t count, Term term) {
  double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < count; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sum[lane] += term(i + lane);
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// An upper bound of the Euclidean norm: the computed norm times 1 + kappa. count must be a multiple of 8.
inline double norm_up_f64(const double* values, size_t count, double kappa) {
  return std::sqrt(sum_in_eight_f64(count, [&](size_t i) { return values[i] * values[i]; })) * (1 + kappa);
}

}  // namespace trawl
