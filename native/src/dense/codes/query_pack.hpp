// Queries prepared for one mean: rotated, quantised to int8 digits, and packed for the kernels with the numbers that the bounds
// need. Shards with the same mean share them.
//
// Pair bound (float64; docs/certificate.md, "The inequality"), z the rotated query, c the row's codes:
//     E = (offset + alpha*beta) + s*(z.c)      b = (A*epsilon + (B + B2*n)*n) + C      E - b <= S <= E + b
//
// Row test (float32; "The row test" there): with I the integer dot product of c and digits h (z ~ t*h),
//     v = s*I + phi*beta' + a*epsilon + c*n < theta(tau)   proves   S < tau.
// phi, a and c depend only on the query, theta on the query and the threshold, beta' = row_test_biases() only on the row.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "dense/codes/rotation.hpp"
#include "dense/kernels/kernel_choice.hpp"
#include "dense/prefilter/principal_components.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/metric.hpp"
#include "trawl/prefilter_file.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct QueryBound {
  double offset_f64, alpha_f64;
  double a_f64, b_f64, b2_f64, c_f64;  // A, B, B2, C of the pair bound: for z, not for its digits

  // For the row test. step = t. If not `testable`, a term could overflow float32, so theta is -inf and every row is kept.
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

// The mean of a codes file, with the numbers that packing a query needs.
class PackMean {
 public:
  PackMean(Metric metric, const CodesFile& codes);
  bool matches(const CodesFile& codes) const;

  const Metric metric;
  const int64_t dimension, padded;
  const double kappa;
  const std::vector<float> mean_f32;
  const uint64_t sign_seed;
  const Rotation rotation;
  double norm_f64;    // upper bound of |mean|
  double square_f64;  // mean.mean
};

// Where the digits of queries go, digits_i8[count][padded] in [-largest_digit, largest_digit], and the bounds of the row tests with them.
struct DigitsTo {
  int largest_digit;
  int8_t* digits_i8;
  QueryBound* bounds;

  DigitsTo of_query(int64_t query, int64_t padded) const { return {largest_digit, digits_i8 + query * padded, bounds + query}; }
};

// Writes rotated_f64[padded], and digits and bounds of each form. query_f64[dimension] is the query, divided by its norm for cosine.
void prepare_query(const PackMean& mean, const double* query_f64, double* rotated_f64, const std::vector<DigitsTo>& forms);

// Computes the digits and the bounds of queries, either for the codes or for a prefilter.
class QueryPacker {
 public:
  virtual ~QueryPacker() = default;
  virtual int64_t dimension() const = 0;
  virtual int64_t padded() const = 0;
  // queries_f64[count][dimension] -> rotated_f64[count][padded], and digits and bounds of each form.
  virtual void prepare(const double* queries_f64, int64_t count, double* rotated_f64, const std::vector<DigitsTo>& forms) const = 0;
};

class CodesPacker : public QueryPacker {
 public:
  explicit CodesPacker(const PackMean& mean) : mean_(mean) {}
  int64_t dimension() const override { return mean_.dimension; }
  int64_t padded() const override { return mean_.padded; }
  void prepare(const double* queries_f64, int64_t count, double* rotated_f64, const std::vector<DigitsTo>& forms) const override;

 private:
  const PackMean& mean_;
};

// Packs queries for a prefilter: their coordinates in its principal components. The bounds are valid only for the row test, not
// for interval(). The row test uses a row's `residual` and `size` instead of epsilon and n.
struct CentredQuery;
class PrefilterPacker : public QueryPacker {
 public:
  PrefilterPacker(const PackMean& mean, const float* basis_f32, int64_t components, double orthogonality_error, uint64_t sign_seed,
                  const Kernels& kernels);
  int64_t dimension() const override { return mean_.dimension; }
  int64_t padded() const override { return panels_.columns(); }
  void prepare(const double* queries_f64, int64_t count, double* rotated_f64, const std::vector<DigitsTo>& forms) const override;

 private:
  void finish(const CentredQuery& centred, double* projected_f64, const std::vector<DigitsTo>& forms, int64_t query) const;

  const PackMean& mean_;
  Panels panels_;
  Rotation rotation_;
  double orthogonality_error_;
  const Kernels& kernels_;
};

// What the row tests of queries need, for digits of one size.
struct QueryFactors {
  QueryFactors(int64_t count, int64_t lanes) : bounds(count), phi(lanes), a(lanes), c(lanes) {}
  // Copies phi, a and c of some queries from their bounds.
  void copy_from_bounds(int64_t first, int64_t end);
  // theta: of `first` and the queries after it.
  QueryTest from(int64_t first, const float* theta) const { return {phi.data() + first, a.data() + first, c.data() + first, theta}; }

  std::vector<QueryBound> bounds;  // [count]
  AlignedBuffer<float> phi, a, c;  // [groups*16], zero past count
};

// The queries with these numbers, side by side.
std::vector<double> gather_queries(const double* queries_f64, int64_t dimension, const std::vector<int64_t>& numbers);

struct PackedQueries {
  // queries_f64: count x dimension, as for prepare_query.
  PackedQueries(const QueryPacker& packer, const double* queries_f64, int64_t count, const KernelChoice& choice, ThreadPool& pool);

  int64_t count, groups, padded;
  const Kernels& kernels;                    // scan them: the digits have their offsets
  AlignedBuffer<double> rotated_f64;         // [count][padded]
  AlignedBuffer<int8_t> row_order_i8;        // [count][padded]
  AlignedBuffer<int8_t> lane_order_i8;       // [groups][padded/4][16][4]
  QueryFactors row_order;                    // for the digits in row order
  std::unique_ptr<QueryFactors> lane_order;  // for the digits in lane order, if they are coarser and some queries are scanned as groups

  const QueryFactors& group_factors() const { return lane_order ? *lane_order : row_order; }
};

// v of the row test of one row and one query, by the digits in row order. Only for kernels whose digits in lane order are coarser.
float row_order_value(const CodeRows& rows, int row, const PackedQueries& packed, int64_t query);

// The biases of `count` rows, prepared for the row test. For squared L2 they include the n^2 terms: phi multiplies them too,
// because alpha = 1.
void row_test_biases(Metric metric, const double* bias_f64, const float* norm_f32, int64_t count, double kappa, float* out_f32);

// With larger numbers, the row test of a row could overflow float32. Such a row gets an infinite norm there, so it is kept.
constexpr float kMaxTestableNorm = 0x1p60f;
constexpr double kMaxTestableBias = 0x1p120;
inline bool row_untestable(double bias_f64, float norm_f32, float residual_f32) {
  const double size = bias_f64 < 0 ? -bias_f64 : bias_f64;
  return !(size <= kMaxTestableBias && norm_f32 <= kMaxTestableNorm && residual_f32 <= kMaxTestableNorm);
}

}  // namespace trawl
