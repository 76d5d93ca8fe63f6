// AVX-512 VNNI: vpdpbusd, 64 products per instruction. Query digits + 128 are the unsigned operand.
// Never use vpdpbusds: it saturates sums that would be exact with wrapping.
//
// A tile reads several rows side by side. The hardware prefetcher handles that pattern at less than half the memory's speed.
// So each tile also prefetches as many bytes as it reads, a fixed distance ahead and in the order of addresses.
#include "dense/kernels/kernels.hpp"
#include "dense/kernels/score.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12's own headers leave the masked-off operand undefined
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define TRAWL_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
// Sums stay in registers only if the loops over them are unrolled. GCC does not unroll loops of this size by itself.
#define TRAWL_UNROLL _Pragma("GCC unroll 32")
#define TRAWL_INLINE TRAWL_TARGET inline __attribute__((always_inline))

namespace trawl {

namespace {

// Lanes are queries: compares one row with 16 of them.
TRAWL_INLINE __m512 value_of(__m512i dot, const CodeRows& rows, int row, __m512 phi, __m512 a, __m512 c) {
  __m512 value = _mm512_mul_ps(c, _mm512_set1_ps(rows.test_norm_f32[row]));
  value = _mm512_fmadd_ps(a, _mm512_set1_ps(rows.residual_f32[row]), value);
  value = _mm512_fmadd_ps(phi, _mm512_set1_ps(rows.bias_f32[row]), value);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(rows.scale_f32[row]), value);
}

TRAWL_TARGET inline size_t append_lanes(uint32_t mask, __m512 value, int row, int first_query, Hit* hits) {
  alignas(64) float values[kGroupQueries];
  _mm512_store_ps(values, value);
  size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(first_query + lane), values[lane]};
  }
  return count;
}

// kRows rows x 16 queries, all sums in registers. One load of digits and kRows broadcasts feed kRows products, which keeps the
// multiplier busy in every cycle. kRows is twelve: larger tiles are not faster, and above 16 sums GCC 12 spills registers to
// memory, which halves the speed.
template <int kRows>
TRAWL_INLINE size_t tile(const CodeRows& rows, int first, const int8_t* lane_order, int first_query, const QueryTest& test, Hit* hits) {
  const int64_t padded = rows.padded;
  const int8_t* codes = rows.codes_i8 + first * padded;
  __m512i sum[kRows];
  TRAWL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    sum[i] = _mm512_set1_epi32(static_cast<int32_t>(-128u * static_cast<uint32_t>(rows.code_sum_i32[first + i])));
  }
  const int8_t* ahead = codes + (rows.first_pass ? 2 * kRows * padded : 0);
  for (int64_t line = 0; line < padded; line += 64) {
    TRAWL_UNROLL
    for (int i = 0; i < kRows; ++i, ahead += 64) _mm_prefetch(ahead, _MM_HINT_T1);
    for (int64_t j = line; j < line + 64; j += 4) {
      const __m512i digits = _mm512_load_si512(lane_order + j * kGroupQueries);
      TRAWL_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const __m512i four = _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(codes + i * padded + j));
        sum[i] = _mm512_dpbusd_epi32(sum[i], digits, four);
      }
    }
  }
  const __m512 phi = _mm512_loadu_ps(test.phi + first_query), a = _mm512_loadu_ps(test.a + first_query);
  const __m512 c = _mm512_loadu_ps(test.c + first_query), theta = _mm512_loadu_ps(test.theta + first_query);
  size_t count = 0;
  TRAWL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const __m512 value = value_of(sum[i], rows, first + i, phi, a, c);
    const __mmask16 mask = _mm512_cmp_ps_mask(value, theta, _CMP_NLT_UQ);
    if (__builtin_expect(mask != 0, 0)) count += append_lanes(mask, value, first + i, first_query, hits + count);
  }
  return count;
}

TRAWL_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  for (int group = 0; group < groups; ++group, lane_order += kGroupQueries * rows.padded) {
    int row = 0;
    for (; row + 12 <= rows.rows; row += 12) {
      count += tile<12>(rows, row, lane_order, group * kGroupQueries, test, hits + count);
    }
    for (; row < rows.rows; row += 4) count += tile<4>(rows, row, lane_order, group * kGroupQueries, test, hits + count);
  }
  return count;
}

// Sums of the 16 lanes of four accumulators, in order.
TRAWL_INLINE __m128i reduce4(__m512i s0, __m512i s1, __m512i s2, __m512i s3) {
  const __m512i s01 = _mm512_add_epi32(_mm512_unpacklo_epi32(s0, s1), _mm512_unpackhi_epi32(s0, s1));
  const __m512i s23 = _mm512_add_epi32(_mm512_unpacklo_epi32(s2, s3), _mm512_unpackhi_epi32(s2, s3));
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(s01, s23), _mm512_unpackhi_epi64(s01, s23));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

constexpr int kRowLanes = 16;                // rows whose numbers fit a vector
constexpr int64_t kPrefetchDistance = 8192;  // bytes: far enough to hide memory latency, and small enough for the first-level cache

// Four rows x kQueries queries along the columns; dot[query][16] gets four values from `at`.
template <int kQueries>
TRAWL_INLINE void dots_of_four_rows(const int8_t* codes, int64_t padded, bool first_pass, const int8_t* row_order,
                                    int32_t (*dot)[kRowLanes], int at) {
  __m512i sum[kQueries][4];
  TRAWL_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    TRAWL_UNROLL
    for (int i = 0; i < 4; ++i) sum[q][i] = _mm512_setzero_si512();
  }
  const int8_t* ahead = codes + (first_pass ? kPrefetchDistance : 0);
  if (kQueries == 1) {
    // With one query, memory limits the speed, and it is fastest when rows are read one after another.
    TRAWL_UNROLL
    for (int i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < padded; j += 64, ahead += 64) {
        _mm_prefetch(ahead, _MM_HINT_T0);
        sum[0][i] = _mm512_dpbusd_epi32(sum[0][i], _mm512_load_si512(row_order + j), _mm512_load_si512(codes + i * padded + j));
      }
    }
  } else {
    for (int64_t j = 0; j < padded; j += 64) {
      __m512i row[4];
      TRAWL_UNROLL
      for (int i = 0; i < 4; ++i, ahead += 64) {
        row[i] = _mm512_load_si512(codes + i * padded + j);
        _mm_prefetch(ahead, _MM_HINT_T0);
      }
      TRAWL_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        const __m512i digits = _mm512_load_si512(row_order + q * padded + j);
        TRAWL_UNROLL
        for (int i = 0; i < 4; ++i) sum[q][i] = _mm512_dpbusd_epi32(sum[q][i], digits, row[i]);
      }
    }
  }
  TRAWL_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    _mm_store_si128(reinterpret_cast<__m128i*>(dot[q] + at), reduce4(sum[q][0], sum[q][1], sum[q][2], sum[q][3]));
  }
}

template <int kQueries>
TRAWL_TARGET size_t scan_sixteen_rows(const CodeRows& rows, int first, const int8_t* row_order, int first_query, const QueryTest& test,
                                      Hit* hits) {
  alignas(64) int32_t dot[kQueries][kRowLanes];
  if (rows.first_pass && first_query == 0) {  // prefetch the rows' numbers several cache lines ahead
    _mm_prefetch(reinterpret_cast<const char*>(rows.code_sum_i32 + first + 6 * kRowLanes), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(rows.scale_f32 + first + 6 * kRowLanes), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(rows.residual_f32 + first + 6 * kRowLanes), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(rows.test_norm_f32 + first + 6 * kRowLanes), _MM_HINT_T0);
  }
  for (int i = 0; i < kRowLanes; i += 4) {
    dots_of_four_rows<kQueries>(rows.codes_i8 + (first + i) * rows.padded, rows.padded, rows.first_pass && first_query == 0, row_order, dot,
                                i);
  }
  const __m512i start = _mm512_slli_epi32(_mm512_loadu_si512(rows.code_sum_i32 + first), 7);
  const __m512 scale = _mm512_loadu_ps(rows.scale_f32 + first), bias = _mm512_loadu_ps(rows.bias_f32 + first);
  const __m512 residual = _mm512_loadu_ps(rows.residual_f32 + first), norm = _mm512_loadu_ps(rows.test_norm_f32 + first);
  size_t count = 0;
  TRAWL_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    const int query = first_query + q;
    const __m512i sum = _mm512_sub_epi32(_mm512_load_si512(dot[q]), start);
    __m512 value = _mm512_mul_ps(norm, _mm512_set1_ps(test.c[query]));
    value = _mm512_fmadd_ps(residual, _mm512_set1_ps(test.a[query]), value);
    value = _mm512_fmadd_ps(bias, _mm512_set1_ps(test.phi[query]), value);
    value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, value);
    uint32_t mask = _mm512_cmp_ps_mask(value, _mm512_set1_ps(test.theta[query]), _CMP_NLT_UQ);
    if (__builtin_expect(mask == 0, 1)) continue;
    alignas(64) float values[kRowLanes];
    _mm512_store_ps(values, value);
    for (; mask != 0; mask &= mask - 1) {
      const int lane = __builtin_ctz(mask);
      hits[count++] = {static_cast<uint16_t>(first + lane), static_cast<uint16_t>(query), values[lane]};
    }
  }
  return count;
}

TRAWL_TARGET size_t scan_rows(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  for (int row = 0; row < rows.rows; row += kRowLanes) {
    for (int query = 0; query < queries; query += 4) {
      const int8_t* digits = row_order + query * rows.padded;
      switch (queries - query) {
        case 1: count += scan_sixteen_rows<1>(rows, row, digits, query, test, hits + count); break;
        case 2: count += scan_sixteen_rows<2>(rows, row, digits, query, test, hits + count); break;
        case 3: count += scan_sixteen_rows<3>(rows, row, digits, query, test, hits + count); break;
        default: count += scan_sixteen_rows<4>(rows, row, digits, query, test, hits + count);
      }
    }
  }
  return count;
}

TRAWL_TARGET double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
  __m512d sum[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd()};
  for (int64_t j = 0; j < padded; j += 32) {
    TRAWL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + j + 8 * i));
      const __m512d code = _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(eight));
      sum[i] = _mm512_fmadd_pd(_mm512_loadu_pd(values + j + 8 * i), code, sum[i]);
    }
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(sum[0], sum[1]), _mm512_add_pd(sum[2], sum[3])));
}

// Transposes eight columns of eight rows: each resulting vector holds one column.
TRAWL_INLINE void load_columns(const uint8_t* const* rows, int64_t column, __m512d* columns) {
  __m512d row[8];
  TRAWL_UNROLL
  for (int i = 0; i < 8; ++i) {
    row[i] = _mm512_cvtps_pd(_mm256_loadu_ps(reinterpret_cast<const float*>(rows[i] + 4 * column)));
  }
  __m512d pair[8];  // pair[2i], pair[2i+1]: even and odd columns of rows 2i and 2i+1
  TRAWL_UNROLL
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = _mm512_unpacklo_pd(row[2 * i], row[2 * i + 1]);
    pair[2 * i + 1] = _mm512_unpackhi_pd(row[2 * i], row[2 * i + 1]);
  }
  TRAWL_UNROLL
  for (int odd = 0; odd < 2; ++odd) {
    const __m512d low04 = _mm512_shuffle_f64x2(pair[odd], pair[2 + odd], 0x88);  // columns 0, 4 of rows 0-3
    const __m512d low26 = _mm512_shuffle_f64x2(pair[odd], pair[2 + odd], 0xDD);
    const __m512d high04 = _mm512_shuffle_f64x2(pair[4 + odd], pair[6 + odd], 0x88);  // of rows 4-7
    const __m512d high26 = _mm512_shuffle_f64x2(pair[4 + odd], pair[6 + odd], 0xDD);
    columns[odd] = _mm512_shuffle_f64x2(low04, high04, 0x88);
    columns[4 + odd] = _mm512_shuffle_f64x2(low04, high04, 0xDD);
    columns[2 + odd] = _mm512_shuffle_f64x2(low26, high26, 0x88);
    columns[6 + odd] = _mm512_shuffle_f64x2(low26, high26, 0xDD);
  }
}

// Lanes are rows. Each lane is one chain in index order, so the sums have the same bits as in sum_rows_serial. A fused
// multiply-add of two float32 values rounds once, and so does a separate one, because the product is exact. Squared differences
// are never fused.
template <bool kSquaredDifference, int kQueries>
TRAWL_INLINE void sum_lanes(const double* const* queries, const uint8_t* const* rows, int64_t dimension, double* sums) {
  __m512d sum[kQueries];
  TRAWL_UNROLL
  for (int q = 0; q < kQueries; ++q) sum[q] = _mm512_setzero_pd();
  int64_t j = 0;
  for (; j + 8 <= dimension; j += 8) {
    __m512d columns[8];
    load_columns(rows, j, columns);
    TRAWL_UNROLL
    for (int i = 0; i < 8; ++i) {
      TRAWL_UNROLL
      for (int q = 0; q < kQueries; ++q) {
        const __m512d value = _mm512_set1_pd(queries[q][j + i]);
        if (kSquaredDifference) {
          const __m512d difference = _mm512_sub_pd(value, columns[i]);
          sum[q] = _mm512_add_pd(sum[q], _mm512_mul_pd(difference, difference));
        } else {
          sum[q] = _mm512_fmadd_pd(value, columns[i], sum[q]);
        }
      }
    }
  }
  TRAWL_UNROLL
  for (int q = 0; q < kQueries; ++q) {
    alignas(64) double lane[8];
    _mm512_store_pd(lane, sum[q]);
    for (int i = 0; i < 8; ++i) {
      for (int64_t column = j; column < dimension; ++column) {
        float value;
        __builtin_memcpy(&value, rows[i] + 4 * column, 4);
        const double difference = queries[q][column] - value, square = difference * difference;
        lane[i] += kSquaredDifference ? square : queries[q][column] * static_cast<double>(value);
      }
      sums[q * kScoreLanes + i] = lane[i];
    }
  }
}

template <bool kSquaredDifference>
TRAWL_TARGET void sum_rows_of(const double* const* queries, int query_count, const uint8_t* const* rows, int64_t dimension, double* sums) {
  int q = 0;
  for (; q + 8 <= query_count; q += 8) sum_lanes<kSquaredDifference, 8>(queries + q, rows, dimension, sums + q * kScoreLanes);
  for (; q + 2 <= query_count; q += 2) sum_lanes<kSquaredDifference, 2>(queries + q, rows, dimension, sums + q * kScoreLanes);
  for (; q < query_count; ++q) sum_lanes<kSquaredDifference, 1>(queries + q, rows, dimension, sums + q * kScoreLanes);
}

TRAWL_TARGET void sum_rows(bool squared_difference, const double* const* queries, int query_count, const uint8_t* const* rows,
                           int64_t dimension, double* sums) {
  if (squared_difference) {
    sum_rows_of<true>(queries, query_count, rows, dimension, sums);
  } else {
    sum_rows_of<false>(queries, query_count, rows, dimension, sums);
  }
}

TRAWL_TARGET void project(const double* rows, const float* panel, int64_t dimension, double* sums) {
  static_assert(kProjectRows == 8 && kProjectColumns == 16, "two vectors per row, 16 sums in registers");
  __m512d sum[8][2];
  TRAWL_UNROLL
  for (int row = 0; row < 8; ++row) sum[row][0] = sum[row][1] = _mm512_setzero_pd();
  for (int64_t j = 0; j < dimension; ++j) {
    const __m512d low = _mm512_cvtps_pd(_mm256_loadu_ps(panel + 16 * j));
    const __m512d high = _mm512_cvtps_pd(_mm256_loadu_ps(panel + 16 * j + 8));
    TRAWL_UNROLL
    for (int row = 0; row < 8; ++row) {
      const __m512d value = _mm512_set1_pd(rows[row * dimension + j]);
      sum[row][0] = _mm512_fmadd_pd(value, low, sum[row][0]);
      sum[row][1] = _mm512_fmadd_pd(value, high, sum[row][1]);
    }
  }
  TRAWL_UNROLL
  for (int row = 0; row < 8; ++row) {
    _mm512_storeu_pd(sums + 16 * row, sum[row][0]);
    _mm512_storeu_pd(sums + 16 * row + 8, sum[row][1]);
  }
}

constexpr Kernels kTable = {
    .name = "avx512-vnni",
    .scan_groups = scan_groups,
    .scan_rows = scan_rows,
    .dot_codes = dot_codes,
    .sum_rows = sum_rows,
    .project = project,
    .groups_offset = 128,
    .rows_offset = true,
    .groups_from = 7,
    .groups_at_once = 1,
};

}  // namespace

const Kernels* const kAvx512VnniKernels = &kTable;

}  // namespace trawl

#else
namespace trawl {
const Kernels* const kAvx512VnniKernels = nullptr;
}
#endif
