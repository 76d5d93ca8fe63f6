// Matrix products of bfloat16 with float32 sums: one table of functions per instruction set.
//
// Order of a sum over k = 0 … K-1 (K even), as vdpbf16ps computes it:   s = 0;  for each pair (k, k+1):  s = s + a[k+1]*b[k+1];
// s = s + a[k]*b[k]. A product of two bfloat16 is exact in float32, so a fused multiply-add gives the same bits as a product and
// a sum. vdpbf16ps takes subnormal numbers for zero; there are none, because factors below kSmallest are stored as zero, so that
// sums are multiples of 2^-116.
//
// Packed matrices. The columns of b are divided into panels of 64, the last one of 16, 32, 48 or 64. A panel with v groups of 16
// columns is [K/2][v][16][2]: for each pair of k, each column's two values side by side. All panels before panel p have K*64*p
// values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trawl::encoder {

constexpr int kFloatLanes = 16;
constexpr int kPanel = 64;  // columns of a panel

constexpr float kSmallest = 0x1p-50f;

inline uint16_t to_bf16(float value) {
  uint32_t bits;
  if (value < kSmallest && value > -kSmallest) return 0;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline float from_bf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

// One product: sums[row][column] for `rows` rows of a and the columns of the packed matrix.
struct ProductTask {
  const uint16_t* a;  // rows of `a_stride` values; readable up to depth
  int64_t a_stride;
  const uint16_t* packed;
  int64_t depth;    // K, even
  int64_t columns;  // a multiple of 16
  int64_t rows;
  float* sums;
  int64_t sums_stride;
};

// Pointers need only the alignment of their type. Nothing checks for overflow: a value beyond float32 becomes infinite or NaN.
struct Products {
  const char* name;
  // sums = a · b for the panels first … last - 1 of b.
  void (*multiply)(const ProductTask& task, int64_t first_panel, int64_t last_panel);
  // The steps between products. Matrices are [rows][columns], row-major, with `columns` a multiple of 16; a stride, in values, is given
  // where rows have gaps. bias, weight and shift are [columns], sums is [rows].
  // bf16[row][column] = values[row][column] + bias[column]
  void (*add_bias)(const float* values, int64_t values_stride, const float* bias, int64_t rows, int64_t columns, uint16_t* bf16,
                   int64_t bf16_stride);
  // bf16[row][column] = activation(values[row][column] + bias[column])
  void (*activate)(int activation, const float* values, int64_t values_stride, const float* bias, int64_t rows, int64_t columns,
                   uint16_t* bf16, int64_t bf16_stride);
  // hidden = norm(values + bias + hidden) * weight + shift, and the same in bf16. values and bias may be null.
  void (*normalize)(const float* values, const float* bias, const float* weight, const float* shift, float epsilon, int64_t rows,
                    int64_t columns, float* hidden, uint16_t* bf16);
  // Replaces each row of scores by exp(scale * (score - largest)) as bf16, with zeros from `keys` to `stride`, a multiple of 16, and
  // gives the sum of the rounded values of each row. scores and bf16 are [rows][stride]; scores from `keys` on are overwritten.
  void (*softmax)(float* scores, int64_t rows, int64_t keys, int64_t stride, float scale, uint16_t* bf16, float* sums);
  // bf16[row][column] = values[row][column] / sums[row]
  void (*divide)(const float* values, int64_t values_stride, const float* sums, int64_t rows, int64_t columns, uint16_t* bf16,
                 int64_t bf16_stride);
};

// Null if its file was compiled for another processor family.
extern const Products* const kAvx512Bf16Products;
extern const Products* const kAvx512Products;
extern const Products* const kAvx2Products;
extern const Products* const kPortableProducts;

}  // namespace trawl::encoder
