#include "dense/prefilter/principal_components.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dense/codes/rounding.hpp"

namespace trawl {

namespace {

// out[rows][columns] = A * B^T for A[rows][inner] and B[columns][inner], both float32. Products are exact, sums in index order.
std::vector<double> multiply(const float* a, int64_t rows, const Panels& b, const Kernels& kernels, ThreadPool& pool) {
  const int64_t inner = b.dimension(), columns = b.columns(), stride = b.stride();
  std::vector<double> out(rows * columns);
  pool.run((rows + kProjectRows - 1) / kProjectRows, [&](int64_t item) {
    AlignedBuffer<double> wide(kProjectRows * inner), sums(kProjectRows * stride);
    const int64_t first = item * kProjectRows, count = std::min<int64_t>(kProjectRows, rows - first);
    for (int64_t i = 0; i < count * inner; ++i) wide[i] = a[first * inner + i];
    b.project(kernels, wide.data(), sums.data());
    for (int64_t i = 0; i < count; ++i) {
      std::copy(sums.data() + i * stride, sums.data() + i * stride + columns, out.data() + (first + i) * columns);
    }
  });
  return out;
}

std::vector<float> transposed(const float* values, int64_t rows, int64_t columns) {
  std::vector<float> out(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = values[i * columns + j];
  }
  return out;
}

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

void fill_random(double* values, int64_t dimension, int64_t padded, uint64_t& state) {
  for (int64_t j = 0; j < dimension; ++j) values[j] = (next_random(state) >> 40 & 1) != 0 ? 1.0 : -1.0;
  for (int64_t j = dimension; j < padded; ++j) values[j] = 0;
}

// Gram-Schmidt, twice per row. A row in the span of the rows before it is replaced by a random one.
void orthonormalise(double* rows, int64_t count, int64_t dimension, int64_t padded, uint64_t& state) {
  const auto dot = [&](const double* a, const double* b) { return sum_in_eight_f64(padded, [&](size_t j) { return a[j] * b[j]; }); };
  for (int64_t i = 0; i < count; ++i) {
    double* row = rows + i * padded;
    for (int attempt = 0;; ++attempt) {
      const double before = std::sqrt(dot(row, row));
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t k = 0; k < i; ++k) {
          const double* other = rows + k * padded;
          const double projection = dot(row, other);
          for (int64_t j = 0; j < padded; ++j) row[j] -= projection * other[j];
        }
      }
      const double after = std::sqrt(dot(row, row));
      if (after > before * 1e-9 && after > 0x1p-300) {
        for (int64_t j = 0; j < padded; ++j) row[j] /= after;
        break;
      }
      if (attempt > 20) {  // cannot happen: a random row is almost never in the span of fewer rows than dimensions
        std::fill(row, row + padded, 0.0);
        break;
      }
      fill_random(row, dimension, padded, state);
    }
  }
}

}  // namespace

Panels::Panels(const float* columns, int64_t count, int64_t dimension)
    : columns_(count), dimension_(dimension), panels_f32_(stride() * dimension) {
  for (int64_t i = 0; i < count; ++i) {
    float* panel = panels_f32_.data() + i / kProjectColumns * kProjectColumns * dimension + i % kProjectColumns;
    for (int64_t j = 0; j < dimension; ++j) panel[j * kProjectColumns] = columns[i * dimension + j];
  }
}

void Panels::project(const Kernels& kernels, const double* rows, double* out) const {
  const int64_t wide = stride();
  double sums[kProjectRows * kProjectColumns];
  for (int64_t first = 0; first < wide; first += kProjectColumns) {
    kernels.project(rows, panels_f32_.data() + first * dimension_, dimension_, sums);
    for (int row = 0; row < kProjectRows; ++row) {
      std::memcpy(out + row * wide + first, sums + row * kProjectColumns, kProjectColumns * sizeof(double));
    }
  }
}

std::vector<float> principal_components(const float* rows, int64_t count, int64_t dimension, int64_t components, const Kernels& kernels,
                                        ThreadPool& pool) {
  const std::vector<float> columns = transposed(rows, count, dimension);
  const std::vector<double> products = multiply(columns.data(), dimension, Panels(columns.data(), dimension, count), kernels, pool);
  double largest = 0;
  for (int64_t j = 0; j < dimension; ++j) largest = std::fmax(largest, products[j * dimension + j]);
  if (!(largest > 0)) return {};
  // Round to float32, so that the products of the iteration are exact; scale, so that no value overflows float32.
  std::vector<float> covariance(dimension * dimension);
  for (size_t i = 0; i < covariance.size(); ++i) covariance[i] = static_cast<float>(products[i] / largest);

  const int64_t padded = (dimension + 7) / 8 * 8;
  std::vector<double> basis(components * padded);
  uint64_t state = 0x9E3779B97F4A7C15ull;
  for (int64_t i = 0; i < components; ++i) fill_random(basis.data() + i * padded, dimension, padded, state);
  std::vector<float> narrow(components * dimension);
  const auto to_float32 = [&] {
    for (int64_t i = 0; i < components; ++i) {
      for (int64_t j = 0; j < dimension; ++j) narrow[i * dimension + j] = static_cast<float>(basis[i * padded + j]);
    }
  };
  // Any components are valid. After eight iterations they cover all but about one percent of the best components' variance.
  constexpr int kIterations = 8;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    to_float32();
    const std::vector<double> product = multiply(covariance.data(), dimension, Panels(narrow.data(), components, dimension), kernels, pool);
    for (int64_t i = 0; i < components; ++i) {
      for (int64_t j = 0; j < dimension; ++j) basis[i * padded + j] = product[j * components + i];
    }
    orthonormalise(basis.data(), components, dimension, padded, state);
  }
  to_float32();
  return narrow;
}

double orthogonality_error_of(const float* basis, int64_t components, int64_t dimension, const Kernels& kernels, ThreadPool& pool) {
  const std::vector<double> gram = multiply(basis, components, Panels(basis, components, dimension), kernels, pool);
  // The Frobenius norm is at least the spectral one. Each entry of the product is off by less than kappa times two lengths
  // of about 1; 2^-28 covers all of them.
  double square = 0;
  for (int64_t i = 0; i < components; ++i) {
    for (int64_t k = 0; k < components; ++k) {
      const double entry = gram[i * components + k] - (i == k ? 1.0 : 0.0);
      square += entry * entry;
    }
  }
  return std::sqrt(square) * (1 + 0x1p-20) + 0x1p-28;
}

}  // namespace trawl
