#include "dense/prefilter/prefilter_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dense/codes/query_pack.hpp"
#include "dense/codes/rounding.hpp"

namespace trawl {

double residual_up_f64(double length_up, double projected_low, double orthogonality_error) {
  const double low = std::fmax(projected_low, 0.0);
  const double square = length_up * length_up * (1 + 0x1p-48) - (1 - orthogonality_error) * low * low;
  return std::sqrt(std::fmax(square, 0.0)) * (1 + 0x1p-48);
}

PrefilterCoder::Scratch::Scratch(const PrefilterCoder& coder)
    : difference_f64(coder.rows_.padded()),
      rows_f64(kProjectRows * coder.rows_.dimension()),
      projected_f64(kProjectRows * coder.components()) {}

PrefilterCoder::PrefilterCoder(const CodesFile& codes, const float* basis, int64_t components, double orthogonality_error,
                               const Kernels& kernels)
    : metric_(codes.metric()),
      rows_(codes.metric(), codes.mean(), codes.sign_seed()),
      panels_(basis, components, codes.dimension()),
      rotation_(components, kSignSeed),
      orthogonality_error_(orthogonality_error),
      kernels_(kernels) {}

bool PrefilterCoder::untestable(const RowCoder::Centred& centred) const {
  const float norm = up32(centred.norm_f64);
  return row_untestable(centred.bias_f64, norm, norm);
}

void PrefilterCoder::load(const float* const* rows, int count, Scratch& scratch) const {
  const int64_t d = rows_.dimension();
  for (int i = 0; i < count; ++i) {
    scratch.centred[i] = rows_.centre(rows[i], scratch.difference_f64.data());
    double* row = scratch.rows_f64.data() + i * d;
    const bool skipped = untestable(scratch.centred[i]);
    // Round to float32, so that products with the components are exact and the sums have the same bits on every machine.
    for (int64_t j = 0; j < d; ++j) row[j] = skipped ? 0.0 : static_cast<float>(scratch.difference_f64[j]);
  }
  panels_.project(kernels_, scratch.rows_f64.data(), scratch.projected_f64.data());
}

PrefilterStats PrefilterCoder::bounds(int at, float scale, const int8_t* codes, const Scratch& scratch, double length) const {
  const int64_t h = components();
  const double kappa = rows_.kappa();
  const RowCoder::Centred& centred = scratch.centred[at];
  const double off = kRowProjectionLoss * centred.norm_f64 + kTinyProjectionLoss;
  const double length_up = length * (1 + kappa) + off;
  const double lost = quantisation_loss(scratch.projected_f64.data() + at * h, h, scale, codes, kappa) + kEta * length_up + off;
  const double residual = residual_up_f64(centred.norm_f64, length * (1 - kappa) - off, orthogonality_error_);
  const float norm = up32(centred.norm_f64);
  float bias;
  row_test_biases(metric_, &centred.bias_f64, &norm, 1, kappa, &bias);
  return {scale, up32(residual), up32(length_up + kCodesLossWeight * lost), sum_of_codes(codes, h), bias};
}

void PrefilterCoder::encode(const float* const* rows, int count, int8_t* codes, PrefilterStats* stats, Scratch& scratch) const {
  const int64_t h = components();
  load(rows, count, scratch);
  for (int i = 0; i < count; ++i, codes += h) {
    if (untestable(scratch.centred[i])) {
      std::memset(codes, 0, h);
      const float inf = std::numeric_limits<float>::infinity();
      stats[i] = {0, inf, inf, 0, 0};
      continue;
    }
    double* projected = scratch.projected_f64.data() + i * h;
    const double length = norm_up_f64(projected, h, 0);
    rotation_.apply(projected);
    const float scale = quantise(projected, h, codes);
    stats[i] = bounds(i, scale, codes, scratch, length);
  }
}

std::string PrefilterCoder::check(int at, const int8_t* codes, const PrefilterStats& stored, Scratch& scratch) const {
  const int64_t h = components();
  const std::string unusable = check_codes(codes, h, stored.scale_f32);
  if (!unusable.empty()) return unusable;
  const bool unbounded = std::isinf(stored.residual_f32) && stored.residual_f32 > 0 && std::isinf(stored.size_f32) && stored.size_f32 > 0 &&
                         stored.bias_f32 == 0;
  if (unbounded) return "";
  if (untestable(scratch.centred[at])) return "the row's row test could overflow float32, so residual and size must be infinite";
  double* projected = scratch.projected_f64.data() + at * h;
  const double length = norm_up_f64(projected, h, 0);
  rotation_.apply(projected);
  const PrefilterStats needed = bounds(at, stored.scale_f32, codes, scratch, length);
  if (stored.code_sum_i32 != needed.code_sum_i32) {
    return "code sum " + std::to_string(stored.code_sum_i32) + ", but the codes sum to " + std::to_string(needed.code_sum_i32);
  }
  if (!(stored.residual_f32 >= needed.residual_f32)) {
    return "residual bound " + number_text(stored.residual_f32) + " is below the needed " + number_text(needed.residual_f32);
  }
  if (!(stored.size_f32 >= needed.size_f32)) {
    return "size bound " + number_text(stored.size_f32) + " is below the needed " + number_text(needed.size_f32);
  }
  if (stored.bias_f32 != needed.bias_f32) {
    return "bias " + number_text(stored.bias_f32) + ", but the row's is " + number_text(needed.bias_f32);
  }
  return "";
}

}  // namespace trawl
