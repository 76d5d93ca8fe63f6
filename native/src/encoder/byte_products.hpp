// Matrix products of int8 with exact sums, and the steps beside them: one table of functions per instruction set.
//
// Weights: a code from -127 to 127, and a scale of its column. Inputs: a code from -127 to 127, and a scale of its row. The scale is
// computed from that row alone, so a token's values do not depend on other texts. An input's code is stored without a sign, with
// 128 added, as vpdpbusd takes it. So the sum of a column begins with its offset correction, -128 times the sum of the column's codes.
// Sums are exact in 32 bits. The value of a sum is (sum * scale of the row) * scale of the column + bias, each step rounded to
// float32. So all instruction sets have the same bits.
//
// Packed matrices. The columns are divided into panels of 64, as in products.hpp. A panel with v groups of 16 columns is
// [K/4][v][16][4]: for each four of k, each column's four codes side by side.
#pragma once
#include "encoder/products.hpp"

namespace trawl::encoder {

constexpr int kCodeOffset = 128;  // of an input's code

// A product for `rows` rows of a and the columns of the packed matrix.
struct ByteTask {
  const uint8_t* a;  // rows of `depth` codes
  const float* row_scales;
  const int8_t* packed;
  const int32_t* offset_corrections;  // of each column
  const float* column_scales;
  const float* bias;
  int64_t depth;    // a multiple of 4, at most 2^16: the largest sum, 255 * 127 * depth, then fits int32
  int64_t columns;  // a multiple of 16
  int64_t rows;
};

// Pointers need only the alignment of their type. Matrices are [rows][columns], row-major, without gaps.
struct ByteProducts {
  const char* name;
  // The values of a product, for the panels first … last - 1. `to` is [rows][columns] of the whole product.
  void (*to_bf16)(const ByteTask& task, int64_t first_panel, int64_t last_panel, uint16_t* to);
  void (*to_float)(const ByteTask& task, int64_t first_panel, int64_t last_panel, float* to);
  // The same after the activation, in bfloat16, which has more digits than the codes.
  void (*to_activation)(const ByteTask& task, int activation, int64_t first_panel, int64_t last_panel, uint16_t* to);
  // Rows of bfloat16 as codes with a scale each; `columns` is a multiple of 16, scales is [rows].
  void (*quantize)(const uint16_t* values, int64_t rows, int64_t columns, uint8_t* codes, float* scales);
  // hidden = norm(values + hidden) * weight + shift, and the same as codes. values may be null.
  void (*normalize)(const float* values, const float* weight, const float* shift, float epsilon, int64_t rows, int64_t columns,
                    float* hidden, uint8_t* codes, float* scales);
  // As in Products, with powers that are exact enough for bfloat16. Scores from `keys` to `stride`, fewer than 16, may be anything.
  void (*softmax)(const float* scores, int64_t rows, int64_t keys, int64_t stride, float scale, uint16_t* bf16, float* sums);
};

// Null if its file was compiled for another processor family.
extern const ByteProducts* const kAmxByteProducts;
extern const ByteProducts* const kAvx512VnniByteProducts;
extern const ByteProducts* const kAvx2ByteProducts;
extern const ByteProducts* const kPortableByteProducts;

}  // namespace trawl::encoder
