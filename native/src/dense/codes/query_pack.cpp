#include "dense/codes/query_pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dense/codes/rounding.hpp"
#include "dense/prefilter/prefilter_codes.hpp"

namespace trawl {

namespace {

constexpr double kSlack = 0x1p-20;               // twice the error of the at most 8 float32 roundings of a term of the row test
constexpr double kMaxFactor = kMaxTestableNorm;  // products with such factors stay below 2^121, so sums do not overflow float32
constexpr double kLengthOfCoordinates = 1.01;    // |P^T y| <= this * |y|, for an orthogonality error of at most 2^-10
constexpr double kTiniest = 0x1p-120;            // upper bound of the sum of the row test's underflow errors

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
      rotation(padded, sign_seed) {
  const std::vector<double> mean_f64 = widened(mean_f32, padded);
  norm_f64 = norm_up_f64(mean_f64.data(), padded, kappa);
  square_f64 = sum_in_eight_f64(padded, [&](size_t j) { return mean_f64[j] * mean_f64[j]; });
}

bool PackMean::matches(const CodesFile& codes) const {
  return codes.sign_seed() == sign_seed && codes.dimension() == dimension &&
         std::memcmp(codes.mean().data(), mean_f32.data(), 4 * mean_f32.size()) == 0;
}

// The numbers of a centred query, q - alpha*mean (q minus its projection on the mean), that the bounds need.
struct CentredQuery {
  double alpha, offset;
  double norm;             // upper bound of |q - alpha*mean|
  double query_norm;       // g: upper bound of |q|
  double mean_projection;  // |alpha|*m: upper bound of the length of the projection
  double c;                // C of the bound
  double unit_rounding;
};

namespace {

// Writes query - alpha*mean to values[padded].
CentredQuery centre_query(const PackMean& mean, const double* query, double* values) {
  const int64_t d = mean.dimension, padded = mean.padded;
  const double kappa = mean.kappa;
  const bool is_l2 = mean.metric == Metric::kSquaredL2;
  CentredQuery centred;
  // For cosine the unit vectors are rounded; each use of one adds an error of kappa.
  centred.unit_rounding = mean.metric == Metric::kCosine ? kappa : 0.0;
  std::memcpy(values, query, d * sizeof(double));
  std::memset(values + d, 0, (padded - d) * sizeof(double));
  centred.query_norm = norm_up_f64(values, padded, kappa);
  const auto mean_at = [&](size_t j) { return j < static_cast<size_t>(d) ? static_cast<double>(mean.mean_f32[j]) : 0.0; };
  if (is_l2) {
    centred.alpha = 1;
  } else {
    centred.offset = sum_in_eight_f64(padded, [&](size_t j) { return values[j] * mean_at(j); });
    // Round alpha to float32, so that alpha*mean is exact in float64.
    const float alpha = static_cast<float>(centred.offset / mean.square_f64);
    centred.alpha = std::isfinite(alpha) ? alpha : 0.0f;
  }
  for (int64_t j = 0; j < d; ++j) values[j] -= centred.alpha * mean_at(j);
  centred.norm = norm_up_f64(values, padded, kappa);
  if (is_l2) centred.offset = -0.5 * sum_in_eight_f64(padded, [&](size_t j) { return values[j] * values[j]; });
  centred.mean_projection = std::fabs(centred.alpha) * mean.norm_f64;
  centred.c = is_l2 ? 2 * kappa * centred.norm * centred.norm
                    : 2 * kappa * centred.query_norm * mean.norm_f64 * (1 + kappa) + 2 * centred.unit_rounding;
  return centred;
}

// int8 digits of a vector z: z ~ step*digits.
struct Digits {
  double step;
  double norm;   // upper bound of |step*digits|
  double error;  // upper bound of |z - step*digits|
};

// Any step is valid. `smallest_step` keeps the factors of the row test in range if z is close to zero.
Digits make_digits(const double* z, int64_t count, double smallest_step, double kappa, const DigitsTo& to) {
  int8_t* const digits = to.digits_i8;
  const double limit = to.largest_digit;
  double largest = 0;
  for (int64_t j = 0; j < count; ++j) largest = std::fmax(largest, std::fabs(z[j]));
  const double step = std::fmax(std::fmax(largest / limit, 0x1p-126), smallest_step);
  const float step_f32 = static_cast<float>(step);
  Digits made;
  const double t = made.step = std::isfinite(step_f32) ? step_f32 : 0x1p127;
  int64_t square_sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    const double digit = std::fmin(limit, std::fmax(-limit, std::nearbyint(z[j] / t)));
    digits[j] = static_cast<int8_t>(digit);
    square_sum += static_cast<int64_t>(digits[j]) * digits[j];
  }
  made.norm = t * std::sqrt(static_cast<double>(square_sum)) * (1 + kappa);
  made.error = std::sqrt(sum_in_eight_f64(count,
                                          [&](size_t j) {
                                            const double residual = z[j] - t * digits[j];
                                            return residual * residual;
                                          })) *
               (1 + kappa);
  return made;
}

// Sets the query's numbers in the row test v = s*I + phi*beta + a*first + c*second, where `first` and `second` are two numbers
// of the row. a_factor and c_factor are their weights in the bound. first_norm*first + second_norm*second must be at least
// |row - mean|.
void set_row_test(const PackMean& mean, const CentredQuery& centred, const Digits& made, double a_factor, double c_factor,
                  double first_norm, double second_norm, QueryBound& bound) {
  const bool is_l2 = mean.metric == Metric::kSquaredL2;
  const double m = mean.norm_f64, phi = centred.alpha / made.step;
  double share = is_l2 ? 0 : kSlack * std::fabs(phi) * m;
  bound.phi_f32 = static_cast<float>(phi);
  const bool phi_vanishes = std::fabs(phi) < 1 / kMaxFactor;
  if (phi_vanishes) {
    bound.phi_f32 = 0;  // the factors cover phi*beta, whose size is at most |phi|*m*n
    share += 2 * std::fabs(phi) * m;
  }
  a_factor += share * first_norm;
  c_factor += share * second_norm;
  bound.step_f64 = made.step;
  bound.test_c_f64 = centred.c;
  bound.test_a_f32 = up32(a_factor * (1 + kSlack));
  bound.test_n_f32 = up32(c_factor * (1 + kSlack));
  bound.testable = std::fabs(phi) <= kMaxFactor && std::fabs(phi) * m <= kMaxFactor && a_factor <= kMaxFactor && c_factor <= kMaxFactor &&
                   !(is_l2 && phi_vanishes);
  if (!bound.testable) bound.phi_f32 = bound.test_a_f32 = bound.test_n_f32 = 0;
}

}  // namespace

void prepare_query(const PackMean& mean, const double* query, double* rotated, const std::vector<DigitsTo>& forms) {
  const double kappa = mean.kappa;
  const CentredQuery centred = centre_query(mean, query, rotated);
  mean.rotation.apply(rotated);

  // b = A*epsilon + (B + B2*n)*n + C for an approximation of the query with norm p and distance `error` from the query.
  const auto a_of = [&](double p) { return p * (1 + kappa); };
  const auto b_of = [&](double p, double error) {
    const double rounding =
        mean.metric == Metric::kSquaredL2 ? kappa * 2 * p : kappa * (centred.query_norm + centred.mean_projection + 2 * p);
    return (error + centred.unit_rounding + rounding) * (1 + kappa);
  };
  QueryBound bound = {};
  bound.alpha_f64 = centred.alpha;
  bound.offset_f64 = centred.offset;
  const double p_f64 = centred.norm * (1 + kEta);
  bound.a_f64 = a_of(p_f64);
  bound.b_f64 = b_of(p_f64, kEta * centred.norm);
  bound.b2_f64 = mean.metric == Metric::kSquaredL2 ? kappa : 0;
  bound.c_f64 = centred.c;

  for (const DigitsTo& form : forms) {
    const Digits made = make_digits(rotated, mean.padded, std::fabs(centred.alpha) * 0x1p-40, kappa, form);
    const double t = made.step, p = made.norm, error = made.error + kEta * centred.norm;
    *form.bounds = bound;
    set_row_test(mean, centred, made, a_of(p) / t + kSlack * (p / t), b_of(p, error) / t + kSlack * (p / t), 0, 1, *form.bounds);
  }
}

PrefilterPacker::PrefilterPacker(const PackMean& mean, const float* basis, int64_t components, double orthogonality_error,
                                 uint64_t sign_seed, const Kernels& kernels)
    : mean_(mean),
      panels_(basis, components, mean.dimension),
      rotation_(components, sign_seed),
      orthogonality_error_(orthogonality_error),
      kernels_(kernels) {}

void PrefilterPacker::prepare(const double* queries, int64_t count, double* rotated, const std::vector<DigitsTo>& forms) const {
  const int64_t d = mean_.dimension, h = panels_.columns();
  AlignedBuffer<double> values(mean_.padded), rows(kProjectRows * d), projected(kProjectRows * h);
  for (int64_t first = 0; first < count; first += kProjectRows) {
    const int64_t here = std::min<int64_t>(kProjectRows, count - first);
    CentredQuery centred[kProjectRows];
    for (int64_t i = 0; i < here; ++i) {
      centred[i] = centre_query(mean_, queries + (first + i) * d, values.data());
      std::memcpy(rows.data() + i * d, values.data(), d * sizeof(double));
    }
    panels_.project(kernels_, rows.data(), projected.data());
    for (int64_t i = 0; i < here; ++i) {
      double* z = rotated + (first + i) * h;
      std::memcpy(z, projected.data() + i * h, h * sizeof(double));
      finish(centred[i], z, forms, first + i);
    }
  }
}

void PrefilterPacker::finish(const CentredQuery& centred, double* z, const std::vector<DigitsTo>& forms, int64_t query) const {
  const int64_t h = panels_.columns();
  const double kappa = mean_.kappa;
  const double off = kQueryProjectionLoss * centred.norm;
  const double length = norm_up_f64(z, h, 0);
  const double length_up = length * (1 + kappa) + off;
  const double residual = residual_up_f64(centred.norm, length * (1 - kappa) - off, orthogonality_error_);
  rotation_.apply(z);
  for (const DigitsTo& form : forms) {
    const DigitsTo to = form.of_query(query, h);
    const double smallest_step = std::fmax(std::fabs(centred.alpha) * 0x1p-40, residual * 0x1p-30);
    const Digits made = make_digits(z, h, smallest_step, kappa, to);
    const double t = made.step, p = made.norm;
    const double rounding =
        mean_.metric == Metric::kSquaredL2 ? kappa * 2 * p : kappa * (centred.query_norm + centred.mean_projection + 2 * p);
    const double error = made.error + kEta * length_up + off + orthogonality_error_ * length_up;
    const double of_residual = (residual + centred.unit_rounding + rounding) * (1 + kappa);
    const double of_coordinates = (error + centred.unit_rounding + kLengthOfCoordinates * rounding) * (1 + kappa);
    const double of_loss = p * (1 + kappa);
    QueryBound& bound = *to.bounds = {};
    bound.alpha_f64 = centred.alpha;
    bound.offset_f64 = centred.offset;
    set_row_test(mean_, centred, made, of_residual / t, std::fmax(of_loss / kCodesLossWeight, of_coordinates) / t + kSlack * (p / t), 1,
                 kLengthOfCoordinates, bound);
  }
}

void CodesPacker::prepare(const double* queries, int64_t count, double* rotated, const std::vector<DigitsTo>& forms) const {
  for (int64_t q = 0; q < count; ++q) {
    std::vector<DigitsTo> of_query;
    for (const DigitsTo& form : forms) of_query.push_back(form.of_query(q, mean_.padded));
    prepare_query(mean_, queries + q * mean_.dimension, rotated + q * mean_.padded, of_query);
  }
}

float QueryBound::theta(double tau) const {
  if (tau == kInfinity) return std::numeric_limits<float>::infinity();
  constexpr float kKeepAll = -std::numeric_limits<float>::infinity();
  if (!testable) return kKeepAll;
  const double exact = (tau - offset_f64 - test_c_f64 - 0x1p-48 * (std::fabs(tau) + std::fabs(offset_f64) + test_c_f64)) / step_f64 -
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

void QueryFactors::copy_from_bounds(int64_t first, int64_t end) {
  for (int64_t q = first; q < end; ++q) {
    phi[q] = bounds[q].phi_f32;
    a[q] = bounds[q].test_a_f32;
    c[q] = bounds[q].test_n_f32;
  }
}

std::vector<double> gather_queries(const double* queries, int64_t dimension, const std::vector<int64_t>& numbers) {
  std::vector<double> gathered;
  gathered.reserve(numbers.size() * dimension);
  for (const int64_t q : numbers) gathered.insert(gathered.end(), queries + q * dimension, queries + (q + 1) * dimension);
  return gathered;
}

PackedQueries::PackedQueries(const QueryPacker& packer, const double* queries, int64_t count, const KernelChoice& choice, ThreadPool& pool)
    : count(count),
      groups((count + kGroupQueries - 1) / kGroupQueries),
      padded(packer.padded()),
      kernels(choice.for_queries(count, padded)),
      rotated_f64(count * padded),
      row_order_i8(count * padded),
      lane_order_i8(groups * kGroupQueries * padded),
      row_order(count, groups * kGroupQueries) {
  // A lone query is scanned by its digits in row order alone.
  const bool is_coarser = kernels.group_digits < kLargestDigit && groups_to_scan(kernels, count) > 0;
  if (is_coarser) lane_order = std::make_unique<QueryFactors>(count, groups * kGroupQueries);
  pool.run(groups, [&](int64_t group) {
    int8_t* const group_digits = lane_order_i8.data() + group * kGroupQueries * padded;
    std::memset(group_digits, kernels.groups_offset, kGroupQueries * padded);
    const int64_t first = group * kGroupQueries, end = std::min(count, first + kGroupQueries);
    std::vector<DigitsTo> forms = {{kLargestDigit, row_order_i8.data() + first * padded, row_order.bounds.data() + first}};
    AlignedBuffer<int8_t> coarser_digits(is_coarser ? kGroupQueries * padded : 0);
    if (is_coarser) forms.push_back({kernels.group_digits, coarser_digits.data(), lane_order->bounds.data() + first});
    packer.prepare(queries + first * packer.dimension(), end - first, rotated_f64.data() + first * padded, forms);
    row_order.copy_from_bounds(first, end);
    if (is_coarser) lane_order->copy_from_bounds(first, end);
    for (int64_t q = first; q < end; ++q) {
      const int8_t* const digits = forms.back().digits_i8 + (q - first) * padded;
      for (int64_t j = 0; j < padded; j += 4) {
        int8_t* const four = group_digits + j * kGroupQueries + (q - first) * 4;
        for (int i = 0; i < 4; ++i) four[i] = static_cast<int8_t>(digits[j + i] + kernels.groups_offset);
      }
    }
    if (kernels.rows_offset) {
      for (int64_t j = first * padded; j < end * padded; ++j) row_order_i8[j] = static_cast<int8_t>(row_order_i8[j] ^ -128);
    }
  });
}

float row_order_value(const CodeRows& rows, int row, const PackedQueries& packed, int64_t query) {
  const int64_t padded = packed.padded;
  const int32_t dot = packed.kernels.dot_digits(packed.row_order_i8.data() + query * padded, rows.codes_i8 + row * padded, padded);
  const QueryFactors& factors = packed.row_order;
  return rows.scale_f32[row] * static_cast<float>(dot) + factors.phi[query] * rows.bias_f32[row] +
         factors.a[query] * rows.residual_f32[row] + factors.c[query] * rows.test_norm_f32[row];
}

}  // namespace trawl
