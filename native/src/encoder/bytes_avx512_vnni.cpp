// Products in int8 with vpdpbusd: 64 products an instruction.
#if defined(__x86_64__)
#include <immintrin.h>
#define TRAWL_WIDE
#define TRAWL_NAME "avx512-vnni"
#define TRAWL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define TRAWL_ROWS 6
#define TRAWL_GROUPS 4
#include "encoder/lane_bytes.hpp"

namespace trawl::encoder {
namespace {

// In this loop GCC 12 copies each sum before and after _mm512_dpbusd_epi32, which halves the speed. So the instruction is written in
// assembler.
template <int R, int V>
TRAWL_INLINE void add_products(const uint8_t* a, int64_t depth, const int8_t* panel, int64_t groups, IntLanes (&sums)[R][V]) {
  __m512i sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = (__m512i)sums[r][v];
  }
  for (int64_t k = 0; k < depth; k += 4, panel += groups * 4 * kFloatLanes) {
    __m512i b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) b[v] = _mm512_loadu_si512(panel + v * 4 * kFloatLanes);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm_prefetch(reinterpret_cast<const char*>(panel + v * 4 * kFloatLanes + groups * kFloatLanes * depth), _MM_HINT_T1);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * depth + k, 4);
      const __m512i codes = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) asm("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(codes), "v"(b[v]));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = (IntLanes)sum[r][v];
  }
}

}  // namespace
}  // namespace trawl::encoder

#include "encoder/byte_blocks.hpp"
#include "encoder/byte_table.hpp"

namespace trawl::encoder {
const ByteProducts* const kAvx512VnniByteProducts = &kTable;
}  // namespace trawl::encoder
#else
#include "encoder/byte_products.hpp"
namespace trawl::encoder {
const ByteProducts* const kAvx512VnniByteProducts = nullptr;
}
#endif
