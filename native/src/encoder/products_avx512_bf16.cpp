// Products with vdpbf16ps: 32 products an instruction.
#if defined(__x86_64__)
#include <immintrin.h>
#define TRAWL_WIDE
#define TRAWL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#include "encoder/lane_steps.hpp"

namespace trawl::encoder {
namespace {

// R rows by V groups of 16 columns, whose sums stay in registers.
template <int R, int V>
TRAWL_INLINE void tile(const uint16_t* a, int64_t a_stride, const uint16_t* panel, int64_t depth, float* sums, int64_t stride) {
  __m512 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < depth; k += 2, panel += V * 2 * kFloatLanes) {
    __m512bh b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) b[v] = (__m512bh)_mm512_loadu_si512(panel + v * 2 * kFloatLanes);
    // The same place in the next panel.
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm_prefetch(reinterpret_cast<const char*>(panel + v * 2 * kFloatLanes + V * kFloatLanes * depth), _MM_HINT_T1);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + r * a_stride + k, 4);
      const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], both, b[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(sums + r * stride + v * kFloatLanes, sum[r][v]);
  }
}

template <int V>
TRAWL_INLINE void panel_rows(const ProductTask& t, const uint16_t* panel, float* sums) {
  int64_t row = 0;
  for (; row + 6 <= t.rows; row += 6)
    tile<6, V>(t.a + row * t.a_stride, t.a_stride, panel, t.depth, sums + row * t.sums_stride, t.sums_stride);
  const uint16_t* a = t.a + row * t.a_stride;
  float* to = sums + row * t.sums_stride;
  switch (t.rows - row) {
    case 5: return tile<5, V>(a, t.a_stride, panel, t.depth, to, t.sums_stride);
    case 4: return tile<4, V>(a, t.a_stride, panel, t.depth, to, t.sums_stride);
    case 3: return tile<3, V>(a, t.a_stride, panel, t.depth, to, t.sums_stride);
    case 2: return tile<2, V>(a, t.a_stride, panel, t.depth, to, t.sums_stride);
    case 1: return tile<1, V>(a, t.a_stride, panel, t.depth, to, t.sums_stride);
    default: return;
  }
}

TRAWL_TARGET void multiply(const ProductTask& t, int64_t first, int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    const uint16_t* panel = t.packed + p * kPanel * t.depth;
    float* sums = t.sums + p * kPanel;
    const int64_t left = t.columns - p * kPanel;
    if (left >= kPanel) {
      panel_rows<4>(t, panel, sums);
    } else if (left == 48) {
      panel_rows<3>(t, panel, sums);
    } else if (left == 32) {
      panel_rows<2>(t, panel, sums);
    } else {
      panel_rows<1>(t, panel, sums);
    }
  }
}

const Products kTable = {"avx512-bf16", multiply, add_bias, activate, normalize, softmax, divide};

}  // namespace
const Products* const kAvx512Bf16Products = &kTable;
}  // namespace trawl::encoder
#else
#include "encoder/products.hpp"
namespace trawl::encoder {
const Products* const kAvx512Bf16Products = nullptr;
}
#endif
