// Directions along which vectors are projected: P, [directions][dimension], nearly orthonormal rows.
#pragma once
#include <cstdint>
#include <vector>

#include "aligned_buffer.hpp"
#include "kernels.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

// A matrix B[columns][dimension] of float32, packed for Kernels::project. Columns are filled up with zeros.
class Panels {
 public:
  Panels(const float* columns_f32, int64_t columns, int64_t dimension);
  int64_t columns() const { return columns_; }
  int64_t dimension() const { return dimension_; }
  // out_f64[kProjectRows][columns rounded up to kProjectDirections] = rows * B^T.
  void project(const Kernels& kernels, const double* rows_f64, double* out_f64) const;
  int64_t stride() const { return (columns_ + kProjectDirections - 1) / kProjectDirections * kProjectDirections; }

 private:
  int64_t columns_, dimension_;
  AlignedBuffer<float> panels_f32_;
};

// Leading directions of rows_f32[count][dimension] (already centred), by orthogonal iteration: the longest first. The bits
// depend on the rows alone. Empty where the rows do not vary.
std::vector<float> leading_directions(const float* rows_f32, int64_t count, int64_t dimension, int64_t directions,
                                      const Kernels& kernels, ThreadPool& pool);

// An upper bound of the norm of P P^T - I.
double directions_defect(const float* basis_f32, int64_t directions, int64_t dimension, const Kernels& kernels,
                         ThreadPool& pool);

}  // namespace trawl
