// AVX2: vpmaddubsw multiplies 32 unsigned by 32 signed bytes and adds pairs of products in int16, vpmaddwd with ones widens the sums
// to int32. Two forms of digits keep the sums below 2^15:
//
// - Natural digits: |digit| times sign(code, digit), at most 127*127*2 = 32,258 a pair. An offset of 128 would give 255*127*2.
// - Packed digits are in [-32, 32], with an offset of 32 in [0, 64]: at most 64*127*4 = 32,512 for two pairs. So two sums are added
//   before they are widened, and no product needs a sign: 2.5 instructions for 32 products in place of four.
#include "dense/kernels/kernels.hpp"
#include "dense/kernels/score.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define TRAWL_TARGET __attribute__((target("avx2,fma")))
// Sums stay in registers only if the loops over them are unrolled. GCC does not unroll loops of this size by itself.
#define TRAWL_UNROLL _Pragma("GCC unroll 32")
#define TRAWL_INLINE TRAWL_TARGET inline __attribute__((always_inline))

namespace trawl {

namespace {

constexpr int kGroupDigits = 32;
static_assert(2 * kGroupDigits * kLargestDigit * 4 <= INT16_MAX);

TRAWL_INLINE __m256i add_products(__m256i sum, __m256i digits, __m256i magnitude, __m256i codes) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(codes, digits));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

TRAWL_INLINE uint32_t not_less(__m256 value, __m256 theta) { return _mm256_movemask_ps(_mm256_cmp_ps(value, theta, _CMP_NLT_UQ)); }

// kRows rows x 8 queries (half a group).
template <int kRows>
TRAWL_INLINE size_t tile(const CodeRows& rows, int first, const int8_t* lane_order, int first_query, const QueryTest& test, Hit* hits) {
  const int64_t padded = rows.padded;
  __m256i sum[kRows];
  TRAWL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    sum[i] =
        _mm256_set1_epi32(static_cast<int32_t>(-static_cast<uint32_t>(kGroupDigits) * static_cast<uint32_t>(rows.code_sum_i32[first + i])));
  }
  const int8_t* codes = rows.codes_i8 + first * padded;
  for (int64_t j = 0; j < padded; j += 8) {
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(lane_order + j * kGroupQueries));
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(lane_order + (j + 4) * kGroupQueries));
    TRAWL_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int8_t* const eight = codes + i * padded + j;
      const __m256i first_four = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(eight));
      const __m256i last_four = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(eight + 4));
      const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, first_four), _mm256_maddubs_epi16(high, last_four));
      sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
  }
  const __m256 phi = _mm256_loadu_ps(test.phi + first_query), a = _mm256_loadu_ps(test.a + first_query);
  const __m256 c = _mm256_loadu_ps(test.c + first_query), theta = _mm256_loadu_ps(test.theta + first_query);
  size_t count = 0;
  TRAWL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const int row = first + i;
    __m256 row_terms = _mm256_mul_ps(c, _mm256_set1_ps(rows.test_norm_f32[row]));
    row_terms = _mm256_fmadd_ps(a, _mm256_set1_ps(rows.residual_f32[row]), row_terms);
    row_terms = _mm256_fmadd_ps(phi, _mm256_set1_ps(rows.bias_f32[row]), row_terms);
    const __m256 value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i]), _mm256_set1_ps(rows.scale_f32[row]), row_terms);
    uint32_t mask = not_less(value, theta);
    if (__builtin_expect(mask == 0, 1)) continue;
    alignas(32) float values[8];
    _mm256_store_ps(values, value);
    for (; mask != 0; mask &= mask - 1) {
      const int lane = __builtin_ctz(mask);
      hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(first_query + lane), values[lane]};
    }
  }
  return count;
}

TRAWL_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  // The next rows go to the second cache level, a part in each call.
  for (int64_t at = 0; at < rows.ahead_bytes; at += 64) _mm_prefetch(rows.ahead + at, _MM_HINT_T1);
  size_t count = 0;
  for (int half = 0; half < 2 * groups; ++half) {
    // The digits of the two halves alternate: 32 of every 64 bytes.
    const int8_t* digits = lane_order + half / 2 * kGroupQueries * rows.padded + half % 2 * 32;
    int row = 0;
    for (; row + 6 <= rows.rows; row += 6) count += tile<6>(rows, row, digits, half * 8, test, hits + count);
    for (; row < rows.rows; row += 2) count += tile<2>(rows, row, digits, half * 8, test, hits + count);
  }
  return count;
}

TRAWL_INLINE int32_t sum_of_lanes(__m256i v) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half);
}

TRAWL_TARGET size_t scan_rows(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  const int64_t padded = rows.padded;
  for (int first = 0; first < rows.rows; first += 8) {
    const __m256 scale = _mm256_loadu_ps(rows.scale_f32 + first), bias = _mm256_loadu_ps(rows.bias_f32 + first);
    const __m256 residual = _mm256_loadu_ps(rows.residual_f32 + first), norm = _mm256_loadu_ps(rows.test_norm_f32 + first);
    for (int query = 0; query < queries; ++query) {
      const int8_t* digits_at = row_order + query * padded;
      alignas(32) int32_t dot[8];
      for (int four = 0; four < 8; four += 4) {
        const int8_t* codes = rows.codes_i8 + (first + four) * padded;
        const int8_t* ahead = codes + (rows.first_pass && query == 0 ? 8192 : 0);  // see scan_avx512_vnni.cpp
        __m256i sum[4];
        TRAWL_UNROLL
        for (int i = 0; i < 4; ++i) sum[i] = _mm256_setzero_si256();
        for (int64_t j = 0; j < padded; j += 32, ahead += 128) {
          __builtin_prefetch(ahead);
          __builtin_prefetch(ahead + 64);
          const __m256i digits = _mm256_load_si256(reinterpret_cast<const __m256i*>(digits_at + j));
          const __m256i magnitude = _mm256_abs_epi8(digits);
          TRAWL_UNROLL
          for (int i = 0; i < 4; ++i) {
            const __m256i row = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + i * padded + j));
            sum[i] = add_products(sum[i], digits, magnitude, row);
          }
        }
        TRAWL_UNROLL
        for (int i = 0; i < 4; ++i) dot[four + i] = sum_of_lanes(sum[i]);
      }
      __m256 row_terms = _mm256_mul_ps(norm, _mm256_set1_ps(test.c[query]));
      row_terms = _mm256_fmadd_ps(residual, _mm256_set1_ps(test.a[query]), row_terms);
      row_terms = _mm256_fmadd_ps(bias, _mm256_set1_ps(test.phi[query]), row_terms);
      const __m256i sums = _mm256_load_si256(reinterpret_cast<const __m256i*>(dot));
      const __m256 value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, row_terms);
      uint32_t mask = not_less(value, _mm256_set1_ps(test.theta[query]));
      if (__builtin_expect(mask == 0, 1)) continue;
      alignas(32) float values[8];
      _mm256_store_ps(values, value);
      for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        hits[count++] = {static_cast<uint16_t>(first + lane), static_cast<uint16_t>(query), values[lane]};
      }
    }
  }
  return count;
}

TRAWL_TARGET int32_t dot_digits(const int8_t* row_order, const int8_t* codes, int64_t padded) {
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int64_t j = 0; j < padded; j += 64) {
    TRAWL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const __m256i digits = _mm256_load_si256(reinterpret_cast<const __m256i*>(row_order + j + 32 * i));
      const __m256i row = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + j + 32 * i));
      sum[i] = add_products(sum[i], digits, _mm256_abs_epi8(digits), row);
    }
  }
  return sum_of_lanes(_mm256_add_epi32(sum[0], sum[1]));
}

TRAWL_TARGET double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
  __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  for (int64_t j = 0; j < padded; j += 16) {
    TRAWL_UNROLL
    for (int i = 0; i < 4; ++i) {
      int32_t four;
      __builtin_memcpy(&four, codes + j + 4 * i, 4);
      const __m256d code = _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)));
      sum[i] = _mm256_fmadd_pd(_mm256_loadu_pd(values + j + 4 * i), code, sum[i]);
    }
  }
  alignas(32) double lane[4];
  _mm256_store_pd(lane, _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

TRAWL_TARGET void project(const double* rows, const float* panel, int64_t dimension, double* sums) {
  // Four rows x eight components at a time, because there are sixteen registers.
  for (int part = 0; part < 4; ++part) {
    const int first = part / 2 * 4, lane = part % 2 * 8;
    __m256d sum[4][2];
    TRAWL_UNROLL
    for (int row = 0; row < 4; ++row) sum[row][0] = sum[row][1] = _mm256_setzero_pd();
    for (int64_t j = 0; j < dimension; ++j) {
      const __m256d low = _mm256_cvtps_pd(_mm_loadu_ps(panel + 16 * j + lane));
      const __m256d high = _mm256_cvtps_pd(_mm_loadu_ps(panel + 16 * j + lane + 4));
      TRAWL_UNROLL
      for (int row = 0; row < 4; ++row) {
        const __m256d value = _mm256_broadcast_sd(rows + (first + row) * dimension + j);
        sum[row][0] = _mm256_fmadd_pd(value, low, sum[row][0]);
        sum[row][1] = _mm256_fmadd_pd(value, high, sum[row][1]);
      }
    }
    TRAWL_UNROLL
    for (int row = 0; row < 4; ++row) {
      _mm256_storeu_pd(sums + 16 * (first + row) + lane, sum[row][0]);
      _mm256_storeu_pd(sums + 16 * (first + row) + lane + 4, sum[row][1]);
    }
  }
}

constexpr Kernels kTable = {
    .name = "avx2",
    .scan_groups = scan_groups,
    .scan_rows = scan_rows,
    .dot_codes = dot_codes,
    .sum_rows = sum_rows_serial,
    .project = project,
    .groups_offset = kGroupDigits,
    .rows_offset = false,
    .groups_from = 10,
    .groups_at_once = 1,
    .group_digits = kGroupDigits,
    .dot_digits = dot_digits,
};

}  // namespace

const Kernels* const kAvx2Kernels = &kTable;

}  // namespace trawl

#else
namespace trawl {
const Kernels* const kAvx2Kernels = nullptr;
}
#endif
