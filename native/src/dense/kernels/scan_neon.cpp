// NEON with the dot product extension (sdot): signed by signed bytes into int32, without offset or saturation.
#include "dense/kernels/kernels.hpp"
#include "dense/kernels/score.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

#if defined(__clang__)
#define TRAWL_TARGET __attribute__((target("dotprod")))
#else
#define TRAWL_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
// Sums stay in registers only if the loops over them are unrolled. GCC does not unroll loops of this size by itself.
#define TRAWL_UNROLL _Pragma("GCC unroll 32")
#define TRAWL_INLINE TRAWL_TARGET inline __attribute__((always_inline))

namespace trawl {

namespace {

TRAWL_INLINE uint32x4_t not_less(float32x4_t value, float32x4_t theta) { return vmvnq_u32(vcltq_f32(value, theta)); }

// Four rows x one group of 16 queries: 16 accumulators.
TRAWL_TARGET size_t tile(const CodeRows& rows, int first, const int8_t* lane_order, int first_query, const QueryTest& test, Hit* hits) {
  const int64_t padded = rows.padded;
  const int8_t* codes = rows.codes_i8 + first * padded;
  int32x4_t sum[4][4];
  TRAWL_UNROLL
  for (int i = 0; i < 4; ++i) {
    TRAWL_UNROLL
    for (int g = 0; g < 4; ++g) sum[i][g] = vdupq_n_s32(0);
  }
  for (int64_t j = 0; j < padded; j += 16) {
    int8x16_t row[4];
    TRAWL_UNROLL
    for (int i = 0; i < 4; ++i) row[i] = vld1q_s8(codes + i * padded + j);
#define TRAWL_STEP(step)                                                                      \
  TRAWL_UNROLL                                                                                \
  for (int g = 0; g < 4; ++g) {                                                               \
    const int8x16_t digits = vld1q_s8(lane_order + (j + 4 * step) * kGroupQueries + 16 * g);  \
    TRAWL_UNROLL                                                                              \
    for (int i = 0; i < 4; ++i) sum[i][g] = vdotq_laneq_s32(sum[i][g], digits, row[i], step); \
  }
    TRAWL_STEP(0) TRAWL_STEP(1) TRAWL_STEP(2) TRAWL_STEP(3)
#undef TRAWL_STEP
  }
  size_t count = 0;
  TRAWL_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = first + i;
    TRAWL_UNROLL
    for (int g = 0; g < 4; ++g) {
      const int query = first_query + 4 * g;
      float32x4_t row_terms = vmulq_n_f32(vld1q_f32(test.c + query), rows.test_norm_f32[row]);
      row_terms = vfmaq_n_f32(row_terms, vld1q_f32(test.a + query), rows.residual_f32[row]);
      row_terms = vfmaq_n_f32(row_terms, vld1q_f32(test.phi + query), rows.bias_f32[row]);
      const float32x4_t value = vfmaq_n_f32(row_terms, vcvtq_f32_s32(sum[i][g]), rows.scale_f32[row]);
      const uint32x4_t mask = not_less(value, vld1q_f32(test.theta + query));
      if (vmaxvq_u32(mask) == 0) continue;
      uint32_t kept[4];
      float values[4];
      vst1q_u32(kept, mask);
      vst1q_f32(values, value);
      for (int lane = 0; lane < 4; ++lane) {
        if (kept[lane] == 0) continue;
        hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(query + lane), values[lane]};
      }
    }
  }
  return count;
}

TRAWL_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  for (int group = 0; group < groups; ++group) {
    for (int row = 0; row < rows.rows; row += 4) {
      count += tile(rows, row, lane_order + group * kGroupQueries * rows.padded, group * kGroupQueries, test, hits + count);
    }
  }
  return count;
}

TRAWL_TARGET size_t scan_rows(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  const int64_t padded = rows.padded;
  for (int first = 0; first < rows.rows; first += 4) {
    const int8_t* codes = rows.codes_i8 + first * padded;
    for (int query = 0; query < queries; ++query) {
      int32x4_t sum[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
      for (int64_t j = 0; j < padded; j += 16) {
        const int8x16_t digits = vld1q_s8(row_order + query * padded + j);
        TRAWL_UNROLL
        for (int i = 0; i < 4; ++i) sum[i] = vdotq_s32(sum[i], digits, vld1q_s8(codes + i * padded + j));
      }
      const int32x4_t dot = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
      float32x4_t row_terms = vmulq_n_f32(vld1q_f32(rows.test_norm_f32 + first), test.c[query]);
      row_terms = vfmaq_n_f32(row_terms, vld1q_f32(rows.residual_f32 + first), test.a[query]);
      row_terms = vfmaq_n_f32(row_terms, vld1q_f32(rows.bias_f32 + first), test.phi[query]);
      const float32x4_t value = vfmaq_f32(row_terms, vcvtq_f32_s32(dot), vld1q_f32(rows.scale_f32 + first));
      const uint32x4_t mask = not_less(value, vdupq_n_f32(test.theta[query]));
      if (vmaxvq_u32(mask) == 0) continue;
      uint32_t kept[4];
      float values[4];
      vst1q_u32(kept, mask);
      vst1q_f32(values, value);
      for (int lane = 0; lane < 4; ++lane) {
        if (kept[lane] == 0) continue;
        hits[count++] = {static_cast<uint16_t>(first + lane), static_cast<uint16_t>(query), values[lane]};
      }
    }
  }
  return count;
}

TRAWL_TARGET double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
  float64x2_t sum[4] = {vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0)};
  for (int64_t j = 0; j < padded; j += 8) {
    const int16x8_t eight = vmovl_s8(vld1_s8(codes + j));
    const int32x4_t low = vmovl_s16(vget_low_s16(eight)), high = vmovl_s16(vget_high_s16(eight));
    sum[0] = vfmaq_f64(sum[0], vld1q_f64(values + j), vcvtq_f64_s64(vmovl_s32(vget_low_s32(low))));
    sum[1] = vfmaq_f64(sum[1], vld1q_f64(values + j + 2), vcvtq_f64_s64(vmovl_s32(vget_high_s32(low))));
    sum[2] = vfmaq_f64(sum[2], vld1q_f64(values + j + 4), vcvtq_f64_s64(vmovl_s32(vget_low_s32(high))));
    sum[3] = vfmaq_f64(sum[3], vld1q_f64(values + j + 6), vcvtq_f64_s64(vmovl_s32(vget_high_s32(high))));
  }
  return vaddvq_f64(vaddq_f64(vaddq_f64(sum[0], sum[1]), vaddq_f64(sum[2], sum[3])));
}

TRAWL_TARGET void project(const double* rows, const float* panel, int64_t dimension, double* sums) {
  // Two rows x sixteen components at a time: 16 sums.
  for (int first = 0; first < kProjectRows; first += 2) {
    float64x2_t sum[2][8];
    TRAWL_UNROLL
    for (int i = 0; i < 8; ++i) sum[0][i] = sum[1][i] = vdupq_n_f64(0);
    for (int64_t j = 0; j < dimension; ++j) {
      const double x0 = rows[first * dimension + j], x1 = rows[(first + 1) * dimension + j];
      TRAWL_UNROLL
      for (int i = 0; i < 8; ++i) {
        const float64x2_t component = vcvt_f64_f32(vld1_f32(panel + 16 * j + 2 * i));
        sum[0][i] = vfmaq_n_f64(sum[0][i], component, x0);
        sum[1][i] = vfmaq_n_f64(sum[1][i], component, x1);
      }
    }
    TRAWL_UNROLL
    for (int i = 0; i < 8; ++i) {
      vst1q_f64(sums + 16 * first + 2 * i, sum[0][i]);
      vst1q_f64(sums + 16 * (first + 1) + 2 * i, sum[1][i]);
    }
  }
}

constexpr Kernels kTable = {
    .name = "neon",
    .scan_groups = scan_groups,
    .scan_rows = scan_rows,
    .dot_codes = dot_codes,
    .sum_rows = sum_rows_serial,
    .project = project,
    .groups_offset = 0,
    .rows_offset = false,
    .groups_from = kGroupQueries,
    .groups_at_once = 1,
};

}  // namespace

const Kernels* const kNeonKernels = &kTable;

}  // namespace trawl

#else
namespace trawl {
const Kernels* const kNeonKernels = nullptr;
}
#endif
