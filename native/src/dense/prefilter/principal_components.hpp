// Principal components P[components][dimension], with nearly orthonormal rows, and the projection on them.
#pragma once
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "dense/kernels/kernels.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

// A matrix B[columns][dimension] of float32, packed for Kernels::project. Missing columns are zeros.
class Panels {
 public:
  Panels(const float* columns_f32, int64_t columns, int64_t dimension);
  int64_t columns() const { return columns_; }
  int64_t dimension() const { return dimension_; }
  // out_f64[kProjectRows][columns rounded up to kProjectColumns] = rows * B^T.
  void project(const Kernels& kernels, const double* rows_f64, double* out_f64) const;
  int64_t stride() const { return (columns_ + kProjectColumns - 1) / kProjectColumns * kProjectColumns; }

 private:
  int64_t columns_, dimension_;
  AlignedBuffer<float> panels_f32_;
};

// The leading principal components of rows_f32[count][dimension] (centred by the caller), by orthogonal iteration, in order of
// falling variance. The bits depend only on the rows. Empty if all rows are zero.
std::vector<float> principal_components(const float* rows_f32, int64_t count, int64_t dimension, int64_t components, const Kernels& kernels,
                                        ThreadPool& pool);

// The orthogonality error: an upper bound of the norm of P P^T - I.
double orthogonality_error_of(const float* basis_f32, int64_t components, int64_t dimension, const Kernels& kernels, ThreadPool& pool);

}  // namespace trawl
