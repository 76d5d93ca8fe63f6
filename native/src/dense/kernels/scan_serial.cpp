// Portable C++. Tests compare the other instruction sets with it.
#include "dense/kernels/kernels.hpp"
#include "dense/kernels/project_lanes.hpp"
#include "dense/kernels/score.hpp"

namespace trawl {

namespace {

inline float value_of(const CodeRows& rows, int row, const QueryTest& test, int query, int32_t dot_i32) {
  return rows.scale_f32[row] * static_cast<float>(dot_i32) + test.phi[query] * rows.bias_f32[row] + test.a[query] * rows.residual_f32[row] +
         test.c[query] * rows.test_norm_f32[row];
}

size_t scan_groups(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  for (int row = 0; row < rows.rows; ++row) {
    const int8_t* codes = rows.codes_i8 + row * rows.padded;
    for (int group = 0; group < groups; ++group) {
      const int8_t* digits = lane_order + group * kGroupQueries * rows.padded;
      int32_t dot[kGroupQueries] = {};
      for (int64_t j = 0; j < rows.padded; j += 4, digits += 4 * kGroupQueries) {
        for (int lane = 0; lane < kGroupQueries; ++lane) {
          for (int i = 0; i < 4; ++i) dot[lane] += digits[4 * lane + i] * codes[j + i];
        }
      }
      for (int lane = 0; lane < kGroupQueries; ++lane) {
        const int query = group * kGroupQueries + lane;
        const float value = value_of(rows, row, test, query, dot[lane]);
        if (!(value < test.theta[query])) {
          hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(query), value};
        }
      }
    }
  }
  return count;
}

size_t scan_rows(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits) {
  size_t count = 0;
  for (int row = 0; row < rows.rows; ++row) {
    const int8_t* codes = rows.codes_i8 + row * rows.padded;
    for (int query = 0; query < queries; ++query) {
      const int8_t* digits = row_order + query * rows.padded;
      int32_t dot = 0;
      for (int64_t j = 0; j < rows.padded; ++j) dot += digits[j] * codes[j];
      const float value = value_of(rows, row, test, query, dot);
      if (!(value < test.theta[query])) {
        hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(query), value};
      }
    }
  }
  return count;
}

double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
  double sum[4] = {0, 0, 0, 0};
  for (int64_t j = 0; j < padded; j += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[lane] += values[j + lane] * codes[j + lane];
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

constexpr Kernels kTable = {
    .name = "serial",
    .scan_groups = scan_groups,
    .scan_rows = scan_rows,
    .dot_codes = dot_codes,
    .sum_rows = sum_rows_serial,
    .project = project_lanes,
    .groups_offset = 0,
    .rows_offset = false,
    .groups_from = kGroupQueries,
    .groups_at_once = 1,
};

}  // namespace

const Kernels* const kSerialKernels = &kTable;

}  // namespace trawl
