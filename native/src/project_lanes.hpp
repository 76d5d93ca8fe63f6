// The one source of Kernels::project. Inlined into a function that has an instruction set, it is compiled for that set;
// lanes are directions, so however wide the vectors are, each sum is the same chain.
#pragma once
#include "kernels.hpp"

namespace trawl {

inline __attribute__((always_inline)) void project_lanes(const double* rows, const float* panel, int64_t dimension,
                                                         double* sums) {
  double sum[kProjectRows][kProjectDirections] = {};
  for (int64_t j = 0; j < dimension; ++j) {
    for (int row = 0; row < kProjectRows; ++row) {
      const double value = rows[row * dimension + j];
      for (int lane = 0; lane < kProjectDirections; ++lane) {
        sum[row][lane] += value * static_cast<double>(panel[j * kProjectDirections + lane]);
      }
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

}  // namespace trawl
