// Queries prepared for one mean: turned, quantised to one plane of int8 digits, packed for the kernels, and the
// numbers of the bound that belong to the query. Made once for all shards that share a mean.
//
// Pair bound (float64, docs/certificate.md section 2), z the turned query, c the row's codes:
//     E = (offset + alpha*beta) + s*(z.c)      b = (A*epsilon + (B + B2*n)*n) + C      E - b <= S <= E + b
//
// Row test (float32, section 3): with I the integer dot product of the digits h (z ~ t*h),
//     v = s*I + phi*beta' + a*epsilon + c*n < theta(tau)   proves   S < tau.
// phi, a, c depend on the query alone, theta on the threshold too, beta' = row_test_bias() on the row alone.
#pragma once
#include <cstdint>
#include <vector>

#include "aligned_buffer.hpp"
#include "directions.hpp"
#include "kernels.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/metric.hpp"
#include "trawl/screen_file.hpp"
#include "trawl/thread_pool.hpp"
#include "turn.hpp"

namespace trawl {

struct QueryBound {
  double offset_f64, alpha_f64;
  double a_f64, b_f64, b2_f64, c_f64;  // A, B, B2, C for z in float64 ("no plane")

  // For the row test. step = t; `testable` is false where the ranges could leave float32: then theta is -inf.
  double step_f64, test_c_f64;
  float phi_f32, test_a_f32, test_n_f32;
  bool testable;

  struct Interval {
    double lower, upper;
  };
  // Bounds of S from the float64 dot product z.c and the row's numbers.
  Interval interval(double dot_f64, float scale, float residual, float norm, double bias) const {
    const double estimate = (offset_f64 + alpha_f64 * bias) + static_cast<double>(scale) * dot_f64;
    const double n = norm;
    const double bound = (a_f64 * static_cast<double>(residual) + (b_f64 + b2_f64 * n) * n) + c_f64;
    return {estimate - bound, estimate + bound};
  }
  float theta(double tau_f64) const;
};

// The mean and what is derived from it.
class PackMean {
 public:
  PackMean(Metric metric, const CodesFile& codes);
  bool matches(const CodesFile& codes) const;

  const Metric metric;
  const int64_t dimension, padded;
  const double kappa;
  const std::vector<float> mean_f32;
  const uint64_t sign_seed;
  const Turn turn;
  double norm_f64;          // upper bound of |mean|
  double square_f64;        // mean.mean
};

// turned_f64[padded] and digits_i8[padded] are written; query_f64[dimension] is the query (divided by its norm for cosine).
QueryBound prepare_query(const PackMean& mean, const double* query_f64, double* turned_f64, int8_t* digits_i8);

// How queries become digits and bounds: for the codes, or for a screen.
class QueryPacker {
 public:
  virtual ~QueryPacker() = default;
  virtual int64_t dimension() const = 0;
  virtual int64_t padded() const = 0;
  // queries_f64[count][dimension] -> turned_f64, digits_i8 [count][padded] and bounds[count].
  virtual void prepare(const double* queries_f64, int64_t count, double* turned_f64, int8_t* digits_i8,
                       QueryBound* bounds) const = 0;
};

class CodesPacker : public QueryPacker {
 public:
  explicit CodesPacker(const PackMean& mean) : mean_(mean) {}
  int64_t dimension() const override { return mean_.dimension; }
  int64_t padded() const override { return mean_.padded; }
  void prepare(const double* queries_f64, int64_t count, double* turned_f64, int8_t* digits_i8,
               QueryBound* bounds) const override;

 private:
  const PackMean& mean_;
};

// For the coordinates along a screen's directions. Its bounds serve the row test alone (not interval()), whose two numbers
// of a row are then `rest` and `size`.
struct CentredQuery;
class ScreenPacker : public QueryPacker {
 public:
  ScreenPacker(const PackMean& mean, const float* basis_f32, int64_t directions, double defect, uint64_t sign_seed,
               const Kernels& kernels);
  int64_t dimension() const override { return mean_.dimension; }
  int64_t padded() const override { return panels_.columns(); }
  void prepare(const double* queries_f64, int64_t count, double* turned_f64, int8_t* digits_i8,
               QueryBound* bounds) const override;

 private:
  QueryBound bound_of(const CentredQuery& centred, double* projected_f64, int8_t* digits_i8) const;

  const PackMean& mean_;
  Panels panels_;
  Turn turn_;
  double defect_;
  const Kernels& kernels_;
};

struct PackedQueries {
  // queries_f64: count x dimension, as for prepare_query.
  PackedQueries(const QueryPacker& packer, const double* queries_f64, int64_t count, const Kernels& kernels,
                ThreadPool& pool);

  int64_t count, groups, padded;
  std::vector<QueryBound> bounds;        // [count]
  AlignedBuffer<double> turned_f64;      // [count][padded]
  AlignedBuffer<int8_t> natural_i8;      // [count][padded]
  AlignedBuffer<int8_t> grouped_i8;      // [groups][padded/4][16][4]
  AlignedBuffer<float> phi, a, c;        // [groups*16], zero past count
};

// The biases of `count` rows for the float32 lanes. Squared L2 folds its n^2 terms in here, where alpha = 1 makes phi
// the common factor.
void row_test_biases(Metric metric, const double* bias_f64, const float* norm_f32, int64_t count, double kappa,
                     float* out_f32);

// A row whose numbers exceed these could leave float32's range in the row test; it is given an infinite norm there and
// so is kept.
constexpr float kCarefulNorm = 0x1p60f;
constexpr double kCarefulBias = 0x1p120;
inline bool row_needs_care(double bias_f64, float norm_f32, float residual_f32) {
  const double size = bias_f64 < 0 ? -bias_f64 : bias_f64;
  return !(size <= kCarefulBias && norm_f32 <= kCarefulNorm && residual_f32 <= kCarefulNorm);
}

}  // namespace trawl
