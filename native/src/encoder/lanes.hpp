// Sixteen float32 values at once, and the functions that the steps between products need. The file of an instruction set defines
// TRAWL_TARGET, the attribute of its functions, and includes this file and the files of its steps, so that each set compiles the same source. Sums, products and divisions are rounded one by one (-ffp-contract=off), so all of them have the same bits.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // no value of these types is passed: every function is inlined

namespace trawl::encoder {
namespace {

typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef uint32_t BitLanes __attribute__((vector_size(64)));
typedef uint16_t Bf16Lanes __attribute__((vector_size(32)));
#define TRAWL_INLINE static inline __attribute__((always_inline)) TRAWL_TARGET
#define TRAWL_INLINE_MEMBER inline __attribute__((always_inline)) TRAWL_TARGET

TRAWL_INLINE Lanes load(const float* from) {
  Lanes value;
  std::memcpy(&value, from, 64);
  return value;
}
TRAWL_INLINE void store(float* to, Lanes value) { std::memcpy(to, &value, 64); }
TRAWL_INLINE Lanes all(float value) { return value - Lanes{}; }
TRAWL_INLINE IntLanes bits_of(Lanes value) { return reinterpret_cast<IntLanes>(value); }
TRAWL_INLINE Lanes lanes_of(IntLanes bits) { return reinterpret_cast<Lanes>(bits); }
TRAWL_INLINE Lanes chosen(IntLanes mask, Lanes yes, Lanes no) { return lanes_of((mask & bits_of(yes)) | (~mask & bits_of(no))); }
// GCC 12 finds no single instructions for the following, so a file whose instruction set has registers of 64 bytes defines
// TRAWL_WIDE. The results are the same. (Without the masks of all lanes, GCC 12 warns of its own headers.)
#ifdef TRAWL_WIDE
TRAWL_INLINE Lanes largest(Lanes a, Lanes b) { return (Lanes)_mm512_maskz_max_ps(0xFFFF, (__m512)a, (__m512)b); }
TRAWL_INLINE Lanes smallest(Lanes a, Lanes b) { return (Lanes)_mm512_maskz_min_ps(0xFFFF, (__m512)a, (__m512)b); }
TRAWL_INLINE Bf16Lanes low_halves_of(BitLanes value) { return (Bf16Lanes)_mm512_maskz_cvtepi32_epi16(0xFFFF, (__m512i)value); }
TRAWL_INLINE BitLanes bits_of(Bf16Lanes value) { return (BitLanes)_mm512_maskz_cvtepu16_epi32(0xFFFF, (__m256i)value); }
#else
TRAWL_INLINE Lanes largest(Lanes a, Lanes b) { return chosen(a > b, a, b); }
TRAWL_INLINE Lanes smallest(Lanes a, Lanes b) { return chosen(a < b, a, b); }
TRAWL_INLINE Bf16Lanes low_halves_of(BitLanes value) { return __builtin_convertvector(value, Bf16Lanes); }
TRAWL_INLINE BitLanes bits_of(Bf16Lanes value) { return __builtin_convertvector(value, BitLanes); }
#endif

// To the nearest bfloat16; zero if the magnitude is below kSmallest.
TRAWL_INLINE Bf16Lanes rounded(Lanes value) {
  const IntLanes is_small = lanes_of(bits_of(value) & 0x7FFFFFFF) < kSmallest;
  const BitLanes bits = reinterpret_cast<BitLanes>(bits_of(value) & ~is_small);
  return low_halves_of((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
TRAWL_INLINE void store_rounded(uint16_t* to, Lanes value) {
  const Bf16Lanes half = rounded(value);
  std::memcpy(to, &half, 32);
}

// The sum of the lanes, as a tree: 8 + 8, 4 + 4, …
TRAWL_INLINE float sum_of(Lanes value) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  struct {
    Eight low, high;
  } halves;
  std::memcpy(&halves, &value, 64);
  const Eight eight = halves.low + halves.high;
  struct {
    Four low, high;
  } quarters;
  std::memcpy(&quarters, &eight, 32);
  const Four four = quarters.low + quarters.high;
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// e^x for x in [-87, 88]; other values are moved to the nearer end. Relative error below 3e-7.
TRAWL_INLINE Lanes exp_of(Lanes x) {
  x = smallest(largest(x, all(-87.0f)), all(88.0f));
  // Adding 1.5 * 2^23 rounds to an integer.
  const Lanes shift = all(12582912.0f);
  const Lanes shifted = x * 1.44269504088896f + shift;
  const Lanes n = shifted - shift;
  // ln 2 in two parts, of which the first has few digits, so that n times it is exact.
  const Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  // Taylor's series with the coefficients of the minimax polynomial of Cephes' expf.
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const IntLanes exponent = (bits_of(shifted) - bits_of(shift) + 127) << 23;
  return p * lanes_of(exponent);
}

// x/2 * (1 + erf(x/√2)), with formula 7.1.26 of Abramowitz and Stegun: the error of erf is below 2e-7.
TRAWL_INLINE Lanes gelu(Lanes x) {
  const Lanes z = lanes_of(bits_of(x) & 0x7FFFFFFF) * 0.707106781186548f;
  const Lanes t = 1.0f / (z * 0.3275911f + 1.0f);
  Lanes p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = (p * t + 0.254829592f) * t;
  const Lanes tail = p * exp_of(-(z * z));  // 1 - erf(z)
  const Lanes half = x * 0.5f;
  return half * chosen(x < 0.0f, tail, 2.0f - tail);
}

// x/2 * (1 + tanh(√(2/π) (x + 0.044715 x³)))
TRAWL_INLINE Lanes gelu_tanh(Lanes x) {
  const Lanes u = (x + x * x * x * 0.044715f) * 0.797884560802865f;
  return x * (1.0f - 1.0f / (exp_of(u * 2.0f) + 1.0f));
}

// row = norm(row + values + bias) * weight + shift; values and bias may be null.
TRAWL_INLINE void norm_row(const float* values, const float* bias, const float* weight, const float* shift, float epsilon, int64_t columns,
                           float* row) {
  const float inverse = 1.0f / static_cast<float>(columns);
  Lanes total{};
  for (int64_t c = 0; c < columns; c += kFloatLanes) {
    Lanes x = load(row + c);
    if (values != nullptr) x = x + (bias == nullptr ? load(values + c) : load(values + c) + load(bias + c));
    store(row + c, x);
    total = total + x;
  }
  const Lanes mean = all(sum_of(total) * inverse);
  Lanes squares{};
  for (int64_t c = 0; c < columns; c += kFloatLanes) {
    const Lanes difference = load(row + c) - mean;
    squares = squares + difference * difference;
  }
  const Lanes factor = all(1.0f / std::sqrt(sum_of(squares) * inverse + epsilon));
  for (int64_t c = 0; c < columns; c += kFloatLanes) {
    store(row + c, (load(row + c) - mean) * factor * load(weight + c) + load(shift + c));
  }
}

}  // namespace
}  // namespace trawl::encoder
