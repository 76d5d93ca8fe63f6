#include "query_pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rounding.hpp"

namespace trawl {

namespace {

constexpr double kSlack = 0x1p-20;   // twice the 8 float32 roundings that a term of the row test can meet
constexpr double kLargest = kCarefulNorm;  // factors up to here: products stay below 2^121, sums inside float32
constexpr double kTiniest = 0x1p-120;  // more than the row test's underflows can add up to

std::vector<double> widened(const std::vector<float>& values, int64_t padded) {
  std::vector<double> wide(padded, 0.0);
  std::copy(values.begin(), values.end(), wide.begin());
  return wide;
}

}  // namespace

PackMean::PackMean(Metric metric, const CodesFile& codes)
    : metric(metric),
      dimension(codes.dimension()),
      padded(codes.padded()),
      kappa(kappa_f64(padded)),
      mean_f32(codes.mean()),
      sign_seed(codes.sign_seed()),
      turn(padded, sign_seed) {
  const std::vector<double> mean_f64 = widened(mean_f32, padded);
  norm_f64 = norm_up_f64(mean_f64.data(), padded, kappa);
  square_f64 = sum_in_eight_f64(padded, [&](size_t j) { return mean_f64[j] * mean_f64[j]; });
}

bool PackMean::matches(const CodesFile& codes) const {
  return codes.sign_seed() == sign_seed && codes.dimension() == dimension &&
         std::memcmp(codes.mean().data(), mean_f32.data(), 4 * mean_f32.size()) == 0;
}

QueryBound prepare_query(const PackMean& mean, const double* query, double* turned, int8_t* digits) {
  const int64_t d = mean.dimension, padded = mean.padded;
  const double kappa = mean.kappa, m = mean.norm_f64;
  const bool is_l2 = mean.metric == Metric::kSquaredL2;
  // The unit vectors of cosine are rounded; each use of one costs a kappa.
  const double unit_rounding = mean.metric == Metric::kCosine ? kappa : 0.0;
  QueryBound bound;

  std::memcpy(turned, query, d * sizeof(double));
  std::memset(turned + d, 0, (padded - d) * sizeof(double));
  const double g = norm_up_f64(turned, padded, kappa);
  const auto mean_at = [&](size_t j) { return j < static_cast<size_t>(d) ? static_cast<double>(mean.mean_f32[j]) : 0.0; };
  if (is_l2) {
    bound.alpha_f64 = 1;
  } else {
    bound.offset_f64 = sum_in_eight_f64(padded, [&](size_t j) { return turned[j] * mean_at(j); });
    // float32, so that alpha*mean is exact in float64.
    const float alpha = static_cast<float>(bound.offset_f64 / mean.square_f64);
    bound.alpha_f64 = std::isfinite(alpha) ? alpha : 0.0f;
  }
  for (int64_t j = 0; j < d; ++j) turned[j] -= bound.alpha_f64 * mean_at(j);
  const double rest_norm = norm_up_f64(turned, padded, kappa);
  if (is_l2) bound.offset_f64 = -0.5 * sum_in_eight_f64(padded, [&](size_t j) { return turned[j] * turned[j]; });
  mean.turn.apply(turned);

  // b = A*epsilon + (B + B2*n)*n + C for a query whose digits have the norm p and leave `left` of it behind.
  const double am = std::fabs(bound.alpha_f64) * m;
  const double c = is_l2 ? 2 * kappa * rest_norm * rest_norm : 2 * kappa * g * m * (1 + kappa) + 2 * unit_rounding;
  const auto a_of = [&](double p) { return p * (1 + kappa); };
  const auto b_of = [&](double p, double left) {
    const double rounding = is_l2 ? kappa * 2 * p : kappa * (g + am + 2 * p);
    return (left + unit_rounding + rounding) * (1 + kappa);
  };

  const double p_f64 = rest_norm * (1 + kEta);
  bound.a_f64 = a_of(p_f64);
  bound.b_f64 = b_of(p_f64, kEta * rest_norm);
  bound.b2_f64 = is_l2 ? kappa : 0;
  bound.c_f64 = c;

  // One plane of digits. Any step is valid; it is kept from making alpha/step huge where z vanishes.
  double largest = 0;
  for (int64_t j = 0; j < padded; ++j) largest = std::fmax(largest, std::fabs(turned[j]));
  double step = std::fmax(largest / 127, 0x1p-126);
  step = std::fmax(step, std::fabs(bound.alpha_f64) * 0x1p-40);
  const float step_f32 = static_cast<float>(step);
  const double t = std::isfinite(step_f32) ? step_f32 : 0x1p127;
  int64_t square_sum = 0;
  for (int64_t j = 0; j < padded; ++j) {
    const double digit = std::fmin(127.0, std::fmax(-127.0, std::nearbyint(turned[j] / t)));
    digits[j] = static_cast<int8_t>(digit);
    square_sum += static_cast<int64_t>(digits[j]) * digits[j];
  }
  const double p = t * std::sqrt(static_cast<double>(square_sum)) * (1 + kappa);
  const double left = std::sqrt(sum_in_eight_f64(padded,
                                                 [&](size_t j) {
                                                   const double rest = turned[j] - t * digits[j];
                                                   return rest * rest;
                                                 })) *
                          (1 + kappa) +
                      kEta * rest_norm;
  const double phi = bound.alpha_f64 / t;
  double n_factor = b_of(p, left) / t + kSlack * (p / t);
  if (!is_l2) n_factor += kSlack * std::fabs(phi) * m;
  bound.phi_f32 = static_cast<float>(phi);
  const bool phi_vanishes = std::fabs(phi) < 1 / kLargest;
  if (phi_vanishes) {
    bound.phi_f32 = 0;  // its product with beta, at most |phi|*m*n, moves into the norm's factor
    n_factor += 2 * std::fabs(phi) * m;
  }
  const double a_factor = a_of(p) / t + kSlack * (p / t);
  bound.step_f64 = t;
  bound.test_c_f64 = c;
  bound.test_a_f32 = up32(a_factor * (1 + kSlack));
  bound.test_n_f32 = up32(n_factor * (1 + kSlack));
  bound.testable = std::fabs(phi) <= kLargest && std::fabs(phi) * m <= kLargest && a_factor <= kLargest &&
                   n_factor <= kLargest && !(is_l2 && phi_vanishes);
  if (!bound.testable) bound.phi_f32 = bound.test_a_f32 = bound.test_n_f32 = 0;
  return bound;
}

float QueryBound::theta(double tau) const {
  if (tau == kInfinity) return std::numeric_limits<float>::infinity();
  constexpr float kKeepAll = -std::numeric_limits<float>::infinity();
  if (!testable) return kKeepAll;
  const double exact = (tau - offset_f64 - test_c_f64 -
                        0x1p-48 * (std::fabs(tau) + std::fabs(offset_f64) + test_c_f64)) /
                           step_f64 -
                       kTiniest * (1 + std::fabs(static_cast<double>(phi_f32)));
  return std::fabs(exact) <= 0x1p100 ? down32(exact) : kKeepAll;
}

void row_test_biases(Metric metric, const double* bias, const float* norm, int64_t count, double kappa, float* out) {
  if (metric != Metric::kSquaredL2) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(bias[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const double n = norm[i];
    out[i] = static_cast<float>(bias[i] + n * n * (kappa + kSlack));
  }
}

PackedQueries::PackedQueries(const PackMean& mean, const double* queries, int64_t count, const Kernels& kernels,
                             ThreadPool& pool)
    : count(count),
      groups((count + kLanes - 1) / kLanes),
      padded(mean.padded),
      bounds(count),
      turned_f64(count * padded),
      natural_i8(count * padded),
      grouped_i8(groups * kLanes * padded),
      phi(groups * kLanes),
      a(groups * kLanes),
      c(groups * kLanes) {
  pool.run(groups, [&](int64_t group) {
    int8_t* packed = grouped_i8.data() + group * kLanes * padded;
    const int8_t group_offset = static_cast<int8_t>(kernels.groups_offset ? -128 : 0);  // +128 modulo 256
    std::memset(packed, group_offset, kLanes * padded);
    for (int64_t q = group * kLanes; q < std::min(count, (group + 1) * kLanes); ++q) {
      int8_t* digits = natural_i8.data() + q * padded;
      bounds[q] = prepare_query(mean, queries + q * mean.dimension, turned_f64.data() + q * padded, digits);
      phi[q] = bounds[q].phi_f32;
      a[q] = bounds[q].test_a_f32;
      c[q] = bounds[q].test_n_f32;
      for (int64_t j = 0; j < padded; j += 4) {
        int8_t* four = packed + j * kLanes + (q - group * kLanes) * 4;
        for (int i = 0; i < 4; ++i) four[i] = static_cast<int8_t>(digits[j + i] ^ group_offset);
      }
      if (kernels.rows_offset) {
        for (int64_t j = 0; j < padded; ++j) digits[j] = static_cast<int8_t>(digits[j] ^ -128);
      }
    }
  });
}

}  // namespace trawl
