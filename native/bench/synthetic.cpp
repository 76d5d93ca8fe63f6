#include "synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>

namespace bench {

void read_flat_header(const std::string& path, int64_t& rows, int64_t& dimension) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  char header[kFlatHeaderBytes];
  const bool read = std::fread(header, 1, sizeof header, file) == sizeof header;
  std::fclose(file);
  if (!read || std::memcmp(header, "IxF", 3) != 0) throw std::runtime_error(path + " is not a FAISS flat index");
  int32_t d = 0;
  std::memcpy(&d, header + 4, 4);
  std::memcpy(&rows, header + 8, 8);
  dimension = d;
}

namespace {

std::vector<float> read_flat_index(const std::string& path, int64_t& rows, int64_t& dimension) {
  read_flat_header(path, rows, dimension);
  std::vector<float> values(rows * dimension);
  FILE* file = std::fopen(path.c_str(), "rb");
  const bool read = file != nullptr && std::fseek(file, kFlatHeaderBytes, SEEK_SET) == 0 &&
                    std::fread(values.data(), 4, values.size(), file) == values.size();
  if (file != nullptr) std::fclose(file);
  if (!read) throw std::runtime_error(path + " is truncated");
  return values;
}

// Cholesky factor: factor^T * factor = covariance, with a small ridge, because a sample may have fewer rows than columns.
std::vector<float> factor_of(std::vector<double> covariance, int64_t d) {
  double trace = 0;
  for (int64_t i = 0; i < d; ++i) trace += covariance[i * d + i];
  for (int64_t i = 0; i < d; ++i) covariance[i * d + i] += 1e-6 * trace / static_cast<double>(d);
  std::vector<double> lower(d * d, 0.0);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = covariance[i * d + j];
      for (int64_t k = 0; k < j; ++k) sum -= lower[i * d + k] * lower[j * d + k];
      lower[i * d + j] = i == j ? std::sqrt(std::max(sum, 0.0)) : sum / lower[j * d + j];
    }
  }
  std::vector<float> factor(d * d);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) factor[j * d + i] = static_cast<float>(lower[i * d + j]);
  }
  return factor;
}

// Multiplies kRows rows at once, so that the factor is read once for all of them.
constexpr int64_t kRows = 16;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void multiply(const float* gaussians, const float* factor, int64_t d, float* out) {
  for (int64_t k = 0; k < d; ++k) {
    const float* line = factor + k * d;
    for (int64_t r = 0; r < kRows; ++r) {
      const float g = gaussians[r * d + k];
      float* row = out + r * d;
      for (int64_t j = k; j < d; ++j) row[j] += g * line[j];  // the factor is upper triangular
    }
  }
}

}  // namespace

Synthetic::Synthetic(const std::string& sample_path, int64_t dimension) : dimension_(dimension) {
  if (sample_path.empty()) {
    mean_f32_.resize(dimension);
    factor_f32_.assign(dimension * dimension, 0.0f);
    for (int64_t j = 0; j < dimension; ++j) {
      mean_f32_[j] = static_cast<float>(1.5 * std::sin(1.3 * static_cast<double>(j)));
      factor_f32_[j * dimension + j] = 1.0f / std::sqrt(1.0f + 4.0f * static_cast<float>(j) / static_cast<float>(dimension));
    }
    return;
  }
  int64_t rows = 0;
  const std::vector<float> sample = read_flat_index(sample_path, rows, dimension_);
  const int64_t d = dimension_;
  std::vector<double> mean(d, 0.0), covariance(d * d, 0.0), row(d);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < d; ++j) mean[j] += sample[i * d + j] / static_cast<double>(rows);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < d; ++j) row[j] = sample[i * d + j] - mean[j];
    for (int64_t a = 0; a < d; ++a) {
      for (int64_t b = 0; b < d; ++b) covariance[a * d + b] += row[a] * row[b] / static_cast<double>(rows);
    }
  }
  mean_f32_.assign(mean.begin(), mean.end());
  factor_f32_ = factor_of(std::move(covariance), d);
}

void Synthetic::rows(uint64_t seed, int64_t first, int64_t count, float* out, trawl::ThreadPool& pool) const {
  const int64_t d = dimension_;
  pool.run((count + kRows - 1) / kRows, [&](int64_t item) {
    const int64_t start = item * kRows, here = std::min(kRows, count - start);
    std::vector<float> gaussians(kRows * d, 0.0f), made(kRows * d);
    for (int64_t r = 0; r < here; ++r) {
      std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(first + start + r));
      // The sum of 8 uniform numbers is cheap and close to normal.
      for (int64_t j = 0; j < d; ++j) {
        const uint64_t a = random(), b = random();
        float sum = 0;
        for (int i = 0; i < 64; i += 16) sum += static_cast<float>((a >> i & 65535) + (b >> i & 65535));
        gaussians[r * d + j] = (sum / 65535.0f - 4.0f) * 1.2247449f;  // 8 uniforms: variance 8/12
      }
    }
    for (int64_t r = 0; r < kRows; ++r) std::copy(mean_f32_.begin(), mean_f32_.end(), made.begin() + r * d);
    multiply(gaussians.data(), factor_f32_.data(), d, made.data());
    for (int64_t r = 0; r < here; ++r) {
      double square = 0;
      for (int64_t j = 0; j < d; ++j) square += static_cast<double>(made[r * d + j]) * made[r * d + j];
      const double norm = std::sqrt(square);
      for (int64_t j = 0; j < d; ++j) out[(start + r) * d + j] = static_cast<float>(made[r * d + j] / norm);
    }
  });
}

}  // namespace bench
