// Products without an instruction for bfloat16: values are widened to float32. A file of an instruction set includes lane_steps.hpp
// and defines TRAWL_ROWS and TRAWL_GROUPS, the rows and groups of 16 columns whose sums fit its registers.
#include "encoder/lane_steps.hpp"

namespace trawl::encoder {
namespace {

#ifndef TRAWL_MULTIPLY_ADD
#define TRAWL_MULTIPLY_ADD(sum, a, b) ((sum) + (a) * (b))
#endif

template <int R, int V>
TRAWL_INLINE void tile(const uint16_t* a, int64_t a_stride, const uint16_t* panel, int64_t groups, int64_t depth, float* sums,
                       int64_t stride) {
  Lanes sum[R][V] = {};
  for (int64_t k = 0; k < depth; k += 2, panel += groups * 2 * kFloatLanes) {
    Lanes even[V], odd[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      IntLanes pairs;
      std::memcpy(&pairs, panel + v * 2 * kFloatLanes, 64);
      even[v] = lanes_of(pairs << 16);
      odd[v] = lanes_of(pairs & static_cast<int32_t>(0xFFFF0000));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float first = from_bf16(a[r * a_stride + k]), second = from_bf16(a[r * a_stride + k + 1]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        sum[r][v] = TRAWL_MULTIPLY_ADD(sum[r][v], all(second), odd[v]);
        sum[r][v] = TRAWL_MULTIPLY_ADD(sum[r][v], all(first), even[v]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) store(sums + r * stride + v * kFloatLanes, sum[r][v]);
  }
}

template <int V>
TRAWL_INLINE void group_rows(const ProductTask& t, const uint16_t* panel, int64_t groups, float* sums) {
  int64_t row = 0;
  for (; row + TRAWL_ROWS <= t.rows; row += TRAWL_ROWS) {
    tile<TRAWL_ROWS, V>(t.a + row * t.a_stride, t.a_stride, panel, groups, t.depth, sums + row * t.sums_stride, t.sums_stride);
  }
  for (; row < t.rows; ++row) {
    tile<1, V>(t.a + row * t.a_stride, t.a_stride, panel, groups, t.depth, sums + row * t.sums_stride, t.sums_stride);
  }
}

TRAWL_TARGET void multiply(const ProductTask& t, int64_t first, int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    const int64_t left = t.columns - p * kPanel, groups = (left < kPanel ? left : kPanel) / kFloatLanes;
    const uint16_t* panel = t.packed + p * kPanel * t.depth;
    float* sums = t.sums + p * kPanel;
    int64_t v = 0;
    for (; v + TRAWL_GROUPS <= groups; v += TRAWL_GROUPS)
      group_rows<TRAWL_GROUPS>(t, panel + v * 2 * kFloatLanes, groups, sums + v * kFloatLanes);
    for (; v < groups; ++v) group_rows<1>(t, panel + v * 2 * kFloatLanes, groups, sums + v * kFloatLanes);
  }
}

}  // namespace
}  // namespace trawl::encoder
