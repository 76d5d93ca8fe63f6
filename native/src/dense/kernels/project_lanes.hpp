// Kernels::project in portable C++. When it is inlined into a function with a target attribute, it is compiled for that
// instruction set. Lanes are columns, so each sum is the same chain at every vector width.
#pragma once
#include "dense/kernels/kernels.hpp"

namespace trawl {

inline __attribute__((always_inline)) void project_lanes(const double* rows, const float* panel, int64_t dimension, double* sums) {
  double sum[kProjectRows][kProjectColumns] = {};
  for (int64_t j = 0; j < dimension; ++j) {
    for (int row = 0; row < kProjectRows; ++row) {
      const double value = rows[row * dimension + j];
      for (int lane = 0; lane < kProjectColumns; ++lane) {
        sum[row][lane] += value * static_cast<double>(panel[j * kProjectColumns + lane]);
      }
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

}  // namespace trawl
