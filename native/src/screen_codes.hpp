// Rows -> codes along the directions and the numbers that bound what lies outside. See docs/certificate.md, "The screen".
#pragma once
#include <string>

#include "directions.hpp"
#include "row_codes.hpp"
#include "trawl/screen_file.hpp"

namespace trawl {

struct ScreenStats {
  float scale_f32;
  float rest_f32;  // rho
  float size_f32;
  int32_t code_sum_i32;
  float bias_f32;
};

// Terms that reader and writer of a screen must agree on.
// What a projection may be off by, as a share of the length of what was projected: of a row, whose coordinates are
// rounded to float32 first, and of a query.
constexpr double kRowProjectionLoss = 0x1p-23, kQueryProjectionLoss = 0x1p-33;
constexpr double kTinyProjectionLoss = 0x1p-139;  // subnormal float32 coordinates
constexpr double kCodesLossWeight = 128;          // `size` = |coordinates| + this * what the codes lost of them

// Upper bound of |v - P^T P v| from an upper bound of |v| and a lower bound of |P v| (Pythagoras, docs/certificate.md).
double rest_up_f64(double length_up, double projected_low, double defect);

// Immutable; shared by threads, each with its own Scratch.
class ScreenCoder {
 public:
  ScreenCoder(const CodesFile& codes, const float* basis_f32, int64_t directions, double defect, const Kernels& kernels);

  struct Scratch {
    explicit Scratch(const ScreenCoder& coder);
    AlignedBuffer<double> difference_f64, rows_f64, projected_f64;
    RowCoder::Centred centred[kProjectRows];
  };

  int64_t directions() const { return panels_.columns(); }
  // 1 to kProjectRows rows at once. codes_i8[count][directions].
  void encode(const float* const* rows_f32, int count, int8_t* codes_i8, ScreenStats* stats, Scratch& scratch) const;
  // Empty when the stored codes and numbers certify rows_f32[at], else the reason. Needs a load() of the rows before it.
  void load(const float* const* rows_f32, int count, Scratch& scratch) const;
  std::string check(int at, const int8_t* codes_i8, const ScreenStats& stored, Scratch& scratch) const;

 private:
  bool needs_care(const RowCoder::Centred& centred) const;
  ScreenStats bounds(int at, float scale_f32, const int8_t* codes_i8, const Scratch& scratch, double length) const;

  Metric metric_;
  RowCoder rows_;
  Panels panels_;
  Turn turn_;
  double defect_;
  const Kernels& kernels_;
};

}  // namespace trawl
