// Products in int8 with vpmaddwd, after widening to 16 bits: vpmaddubsw, which takes bytes, adds two products in 16 bits and may saturate.
#if defined(__x86_64__)
#include <immintrin.h>
#define TRAWL_AVX2
#define TRAWL_NAME "avx2"
#define TRAWL_TARGET __attribute__((target("avx2")))
#define TRAWL_ROWS 4
#define TRAWL_GROUPS 1
#include "encoder/lane_bytes.hpp"

namespace trawl::encoder {
namespace {

template <int R, int V>
TRAWL_INLINE void add_products(const uint8_t* a, int64_t depth, const int8_t* panel, int64_t groups, IntLanes (&sums)[R][V]) {
  static_assert(V == 1, "a group of columns at a time");
  __m256i sum[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) std::memcpy(sum[r], &sums[r][0], 64);
  const __m256i low_bytes = _mm256_set1_epi16(0xFF);
  for (int64_t k = 0; k < depth; k += 4, panel += groups * 4 * kFloatLanes) {
    // Of each column's four codes, the first and third, and the second and fourth.
    __m256i first[2], second[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + 32 * half));
      first[half] = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8);
      second[half] = _mm256_srai_epi16(codes, 8);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * depth + k, 4);
      const __m256i codes = _mm256_set1_epi32(four);
      const __m256i a_first = _mm256_and_si256(codes, low_bytes), a_second = _mm256_srli_epi16(codes, 8);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        sum[r][half] = _mm256_add_epi32(sum[r][half], _mm256_madd_epi16(first[half], a_first));
        sum[r][half] = _mm256_add_epi32(sum[r][half], _mm256_madd_epi16(second[half], a_second));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) std::memcpy(&sums[r][0], sum[r], 64);
}

}  // namespace
}  // namespace trawl::encoder

#include "encoder/byte_blocks.hpp"
#include "encoder/byte_table.hpp"

namespace trawl::encoder {
const ByteProducts* const kAvx2ByteProducts = &kTable;
}  // namespace trawl::encoder
#else
#include "encoder/byte_products.hpp"
namespace trawl::encoder {
const ByteProducts* const kAvx2ByteProducts = nullptr;
}
#endif
