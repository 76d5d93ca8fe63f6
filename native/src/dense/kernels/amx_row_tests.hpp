// The row test of scan_amx.cpp: of the dot products of 16 queries and a row, or first of the largest of 16 rows.
#pragma once
#include "base/amx_tiles.hpp"
#include "dense/kernels/kernels.hpp"

namespace trawl {

namespace {

#if defined(TRAWL_AMX_EMULATION) && !defined(TRAWL_AMX_EMULATION_VECTORS)
#define TRAWL_AMX_PLAIN_TESTS
#define TRAWL_AMX_INLINE inline
#else
#define TRAWL_AMX_INLINE TRAWL_AMX_TARGET inline __attribute__((always_inline))
#endif

// 16 queries of the row test, in registers.
#ifdef TRAWL_AMX_PLAIN_TESTS
struct Lanes {
  Lanes(const QueryTest& test, int first) : test(test), first(first) {}
  const QueryTest& test;
  int first;
};

// Appends the pairs of a row that are kept.
inline size_t test_row(const CodeRows& rows, int row, const int32_t* dot, const Lanes& lanes, Hit* hits) {
  size_t count = 0;
  for (int lane = 0; lane < kGroupQueries; ++lane) {
    const int q = lanes.first + lane;
    const float value = rows.scale_f32[row] * static_cast<float>(dot[lane]) + lanes.test.phi[q] * rows.bias_f32[row] +
                        lanes.test.a[q] * rows.residual_f32[row] + lanes.test.c[q] * rows.test_norm_f32[row];
    if (!(value < lanes.test.theta[q])) hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(q), value};
  }
  return count;
}
inline void prefetch(const int8_t*) {}
#else
struct Lanes {
  TRAWL_AMX_INLINE Lanes(const QueryTest& test, int first)
      : phi(_mm512_loadu_ps(test.phi + first)),
        a(_mm512_loadu_ps(test.a + first)),
        c(_mm512_loadu_ps(test.c + first)),
        theta(_mm512_loadu_ps(test.theta + first)),
        first(first) {}
  __m512 phi, a, c, theta;
  int first;
};

TRAWL_AMX_TARGET __attribute__((noinline)) size_t append(uint32_t mask, __m512 value, int row, int first_query, Hit* hits) {
  alignas(64) float values[kGroupQueries];
  _mm512_store_ps(values, value);
  size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(first_query + lane), values[lane]};
  }
  return count;
}

TRAWL_AMX_INLINE size_t test_row(const CodeRows& rows, int row, const int32_t* dot, const Lanes& lanes, Hit* hits) {
  __m512 value = _mm512_mul_ps(lanes.c, _mm512_set1_ps(rows.test_norm_f32[row]));
  value = _mm512_fmadd_ps(lanes.a, _mm512_set1_ps(rows.residual_f32[row]), value);
  value = _mm512_fmadd_ps(lanes.phi, _mm512_set1_ps(rows.bias_f32[row]), value);
  value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dot)), _mm512_set1_ps(rows.scale_f32[row]), value);
  const uint32_t mask = _mm512_cmp_ps_mask(value, lanes.theta, _CMP_NLT_UQ);
  return __builtin_expect(mask == 0, 1) ? 0 : append(mask, value, row, lanes.first, hits);
}
TRAWL_AMX_INLINE void prefetch(const int8_t* line) { _mm_prefetch(line, _MM_HINT_T1); }

// Limits of the numbers of 16 rows.
struct RowLimits {
  float scale_low, scale_high, bias_low, bias_high, residual, norm;
};
TRAWL_AMX_INLINE RowLimits limits_of(const CodeRows& rows, int row) {
  const __m512 scale = _mm512_loadu_ps(rows.scale_f32 + row), bias = _mm512_loadu_ps(rows.bias_f32 + row);
  const __m512 residual = _mm512_loadu_ps(rows.residual_f32 + row), norm = _mm512_loadu_ps(rows.test_norm_f32 + row);
  // If one of the numbers is NaN or infinite, the sum is NaN, and then every pair is kept.
  const __m512 zero = _mm512_setzero_ps();
  const __m512 none = _mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(scale, zero), _mm512_mul_ps(bias, zero)),
                                    _mm512_add_ps(_mm512_mul_ps(residual, zero), _mm512_mul_ps(norm, zero)));
  const float sum = _mm512_reduce_add_ps(none);
  return {_mm512_reduce_min_ps(scale), _mm512_reduce_max_ps(scale),          _mm512_reduce_min_ps(bias),
          _mm512_reduce_max_ps(bias),  _mm512_reduce_max_ps(residual) + sum, _mm512_reduce_max_ps(norm)};
}

// Integers such that a dot product below them proves v < theta for each of 16 rows: with u = theta - phi*beta - a*epsilon - c*n for the
// limits of the rows, v < theta if s*I < u.
TRAWL_AMX_INLINE __m512i least_dots(const RowLimits& limits, const Lanes& lanes) {
  const __m512 first = _mm512_mul_ps(lanes.phi, _mm512_set1_ps(limits.bias_low));
  const __m512 second = _mm512_mul_ps(lanes.phi, _mm512_set1_ps(limits.bias_high));
  const __m512 residual = _mm512_mul_ps(lanes.a, _mm512_set1_ps(limits.residual)),
               norm = _mm512_mul_ps(lanes.c, _mm512_set1_ps(limits.norm));
  __m512 u = _mm512_sub_ps(_mm512_sub_ps(_mm512_sub_ps(lanes.theta, _mm512_max_ps(first, second)), residual), norm);
  // More than the rounding of u.
  const __m512 size = _mm512_add_ps(_mm512_add_ps(_mm512_abs_ps(lanes.theta), _mm512_add_ps(_mm512_abs_ps(first), _mm512_abs_ps(second))),
                                    _mm512_add_ps(residual, norm));
  u = _mm512_fnmadd_ps(size, _mm512_set1_ps(0x1p-20f), u);
  const __mmask16 positive = _mm512_cmp_ps_mask(u, _mm512_setzero_ps(), _CMP_GT_OQ);
  const __m512 scale = _mm512_mask_blend_ps(positive, _mm512_set1_ps(limits.scale_low), _mm512_set1_ps(limits.scale_high));
  __m512 least = _mm512_div_ps(u, scale);
  least = _mm512_sub_ps(_mm512_fnmadd_ps(_mm512_abs_ps(least), _mm512_set1_ps(0x1p-20f), least), _mm512_set1_ps(1));
  // theta = +inf, of padding queries, drops every row that has finite numbers.
  const __m512 terms = _mm512_add_ps(_mm512_add_ps(first, second), _mm512_add_ps(residual, norm));
  least = _mm512_mask_mov_ps(least, _mm512_cmp_ps_mask(lanes.theta, _mm512_set1_ps(__builtin_inff()), _CMP_EQ_OQ),
                             _mm512_add_ps(_mm512_set1_ps(0x1p30f), _mm512_mul_ps(_mm512_setzero_ps(), terms)));
  // The minimum with a NaN is the second operand, and its integer is the smallest, which keeps every pair.
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(2147483520.0f), least));
}
#endif

// The tests of dot products that tiles have stored. They run between the products of the next tiles, so that neither waits. Half 0 and
// half 1 are 32 rows by 16 queries each.
class StoredDots {
 public:
  TRAWL_AMX_INLINE StoredDots(const CodeRows& rows, Hit* hits) : rows_(rows), hits_(hits) {}

  // What is stored now: the products of 32 rows from row0 on with 16 queries from query0 on, then those from row1 and query1 on.
  void put(const int32_t* dots, int row0, int row1, int query0, int query1) {
    dots_ = dots;
    row_[0] = row0, row_[1] = row1, query_[0] = query0, query_[1] = query1;
    full_ = true;
  }

  // Tests the stored products. multiply(step) does one of `steps` parts of the next products.
  template <bool kNarrow, typename Multiply>
  TRAWL_AMX_INLINE void test_during(int64_t steps, const QueryTest& test, const Multiply& multiply) {
    if (!full_) {
      for (int64_t step = 0; step < steps; ++step) multiply(step);
      return;
    }
    const Lanes lanes0(test, query_[0]), lanes1(test, query_[1]);
#ifndef TRAWL_AMX_PLAIN_TESTS
    if (kNarrow) {
      // One tile of 16 x 16 after every fourth part of the steps.
      const auto test_one = [&](int64_t tile) TRAWL_AMX_TARGET {
        const int half = static_cast<int>(tile & 1), part = static_cast<int>(tile >> 1) * 16;
        test_tile(dots_ + 512 * half + 16 * part, row_[half] + part, half ? lanes1 : lanes0);
      };
      int64_t tile = 0;
      for (int64_t step = 0; step < steps; ++step) {
        multiply(step);
        if (tile < 4 && tile * steps < 4 * (step + 1)) test_one(tile++);
      }
      for (; tile < 4; ++tile) test_one(tile);
      full_ = false;
      return;
    }
#endif
    const int64_t each = steps > 0 ? (32 + steps - 1) / steps : 32;
    int64_t at = 0;
    for (int64_t step = 0; step < steps; ++step) {
      multiply(step);
      for (const int64_t end = at + each < 32 ? at + each : 32; at < end; ++at) test_both(at, lanes0, lanes1);
    }
    for (; at < 32; ++at) test_both(at, lanes0, lanes1);
    full_ = false;
  }

  template <bool kNarrow>
  TRAWL_AMX_INLINE void finish(const QueryTest& test) {
    test_during<kNarrow>(0, test, [](int64_t) {});
  }

  // Tests 16 rows x 16 queries at once.
  TRAWL_AMX_INLINE void test_now(const int32_t* dots, int row, const Lanes& lanes) {
    for (int i = 0; i < 16; ++i) count_ += test_row(rows_, row + i, dots + 16 * i, lanes, hits_ + count_);
  }
  size_t count() const { return count_; }

 private:
  TRAWL_AMX_INLINE void test_both(int64_t at, const Lanes& lanes0, const Lanes& lanes1) {
    const int i = static_cast<int>(at);
    count_ += test_row(rows_, row_[0] + i, dots_ + 16 * i, lanes0, hits_ + count_);
    count_ += test_row(rows_, row_[1] + i, dots_ + 512 + 16 * i, lanes1, hits_ + count_);
  }
#ifndef TRAWL_AMX_PLAIN_TESTS
  TRAWL_AMX_INLINE void test_tile(const int32_t* dots, int row, const Lanes& lanes) {
    __m512i most = _mm512_load_si512(dots), other = _mm512_load_si512(dots + 16);
#pragma GCC unroll 16
    for (int i = 2; i < 16; i += 2) {
      most = _mm512_max_epi32(most, _mm512_load_si512(dots + 16 * i));
      other = _mm512_max_epi32(other, _mm512_load_si512(dots + 16 * i + 16));
    }
    most = _mm512_max_epi32(most, other);
    if (row_limits_of_ != row) limits_ = limits_of(rows_, row), row_limits_of_ = row;
    if (__builtin_expect(_mm512_cmpge_epi32_mask(most, least_dots(limits_, lanes)) != 0, 0)) test_now(dots, row, lanes);
  }
  RowLimits limits_ = {};
  int row_limits_of_ = -1;
#endif

  const CodeRows& rows_;
  Hit* const hits_;
  size_t count_ = 0;
  bool full_ = false;
  const int32_t* dots_ = nullptr;
  int row_[2] = {}, query_[2] = {};
};

}  // namespace

}  // namespace trawl
