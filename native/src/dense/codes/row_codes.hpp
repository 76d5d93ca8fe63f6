// int8 codes of a row, and the numbers that bound the quantisation error. See docs/certificate.md, "What is stored".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "dense/codes/rotation.hpp"
#include "trawl/metric.hpp"

namespace trawl {

struct RowStats {
  float scale_f32;       // s
  float residual_f32;    // epsilon
  float norm_f32;        // n
  int32_t code_sum_i32;  // r
  double bias_f64;       // beta
};

// Quantises a rotated vector, values_f64[padded]: scale = max abs / 127, codes = rint(values / scale). Any scale and codes
// are valid, because the error is measured afterwards. Returns the scale: 0, or at least 2^-126.
float quantise(const double* values_f64, int64_t padded, int8_t* codes_i8);

// Upper bound of |values - scale*codes|. It does not cover rounding errors in the values.
double quantisation_loss(const double* values_f64, int64_t padded, float scale_f32, const int8_t* codes_i8, double kappa);

int32_t sum_of_codes(const int8_t* codes_i8, int64_t padded);

// Checks that scale and codes are in range. Returns an empty string if they are, else the reason.
std::string check_codes(const int8_t* codes_i8, int64_t padded, float scale_f32);

// The number with nine digits, which are enough to tell any two float32 apart.
std::string number_text(double value);

// Immutable, so threads may share it; each needs its own Scratch.
class RowCoder {
 public:
  RowCoder(Metric metric, const std::vector<float>& mean_f32, uint64_t sign_seed);

  struct Scratch {
    explicit Scratch(int64_t padded) : difference_f64(padded), rotated_f64(padded) {}
    AlignedBuffer<double> difference_f64, rotated_f64;
  };

  // row_f32: [dimension], finite, any alignment. codes_i8: [padded].
  // A row whose bounds overflow float32 gets scale 0 and infinite bounds, so it is a candidate of every query.
  RowStats encode(const float* row_f32, int8_t* codes_i8, Scratch& scratch) const;

  // Checks whether the stored codes and numbers certify the row. Returns an empty string if they do, else the reason.
  std::string check(const float* row_f32, const int8_t* codes_i8, const RowStats& stored, Scratch& scratch) const;

  struct Centred {
    double norm_f64;  // upper bound of |row - mean|, unrounded
    double bias_f64;
  };
  // Writes the row (divided by its norm for cosine) minus the mean to difference_f64[padded], with zeros past the dimension.
  Centred centre(const float* row_f32, double* difference_f64) const;

  int64_t dimension() const { return dimension_; }
  int64_t padded() const { return padded_; }
  double kappa() const { return kappa_; }

 private:
  Centred centre_and_rotate(const float* row_f32, Scratch& scratch) const;
  RowStats bounds(const Centred& centred, float scale_f32, const int8_t* codes_i8, const Scratch& scratch) const;

  Metric metric_;
  int64_t dimension_, padded_;
  double kappa_;
  AlignedBuffer<double> mean_f64_;  // [padded], zeros past the dimension
  Rotation rotation_;
};

// Column of the first NaN or infinity in values[count]; -1 if all are finite.
int64_t first_not_finite(const float* values_f32, int64_t count);

}  // namespace trawl
