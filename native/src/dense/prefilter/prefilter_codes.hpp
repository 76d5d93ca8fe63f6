// Codes of rows projected on principal components, and the numbers that bound the errors of the projection and of the codes.
// See docs/certificate.md, "The prefilter".
#pragma once
#include <string>

#include "dense/codes/row_codes.hpp"
#include "dense/prefilter/principal_components.hpp"
#include "trawl/prefilter_file.hpp"

namespace trawl {

struct PrefilterStats {
  float scale_f32;
  float residual_f32;  // rho
  float size_f32;
  int32_t code_sum_i32;
  float bias_f32;
};

// The reader and the writer of a prefilter must use the same constants.
// Rounding error of a projection, relative to the length of the projected vector: for a row, whose coordinates are first
// rounded to float32, and for a query.
constexpr double kRowProjectionLoss = 0x1p-23, kQueryProjectionLoss = 0x1p-33;
constexpr double kTinyProjectionLoss = 0x1p-139;  // error of subnormal float32 coordinates
constexpr double kCodesLossWeight = 128;          // `size` = |coordinates| + this * quantisation error

// Upper bound of |v - P^T P v|, from an upper bound of |v| and a lower bound of |P v| (Pythagoras, see docs/certificate.md).
double residual_up_f64(double length_up, double projected_low, double orthogonality_error);

// Immutable, so threads may share it; each needs its own Scratch.
class PrefilterCoder {
 public:
  PrefilterCoder(const CodesFile& codes, const float* basis_f32, int64_t components, double orthogonality_error, const Kernels& kernels);

  struct Scratch {
    explicit Scratch(const PrefilterCoder& coder);
    AlignedBuffer<double> difference_f64, rows_f64, projected_f64;
    RowCoder::Centred centred[kProjectRows];
  };

  int64_t components() const { return panels_.columns(); }
  // Encodes 1 to kProjectRows rows. codes_i8[count][components].
  void encode(const float* const* rows_f32, int count, int8_t* codes_i8, PrefilterStats* stats, Scratch& scratch) const;
  // Projects 1 to kProjectRows rows for check().
  void load(const float* const* rows_f32, int count, Scratch& scratch) const;
  // Checks whether the stored codes and numbers certify row `at` of the last load(). Returns an empty string if they do, else the
  // reason. Call it once per row and load().
  std::string check(int at, const int8_t* codes_i8, const PrefilterStats& stored, Scratch& scratch) const;

 private:
  bool untestable(const RowCoder::Centred& centred) const;
  PrefilterStats bounds(int at, float scale_f32, const int8_t* codes_i8, const Scratch& scratch, double length) const;

  Metric metric_;
  RowCoder rows_;
  Panels panels_;
  Rotation rotation_;
  double orthogonality_error_;
  const Kernels& kernels_;
};

}  // namespace trawl
