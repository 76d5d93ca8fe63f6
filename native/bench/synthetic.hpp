// Synthetic rows with the mean and covariance of a sample of real vectors. These determine the bounds of the codes and the
// number of candidates.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trawl/thread_pool.hpp"

namespace bench {

// A FAISS flat index: 45 bytes of header, then the vectors.
constexpr int64_t kFlatHeaderBytes = 45;
void read_flat_header(const std::string& path, int64_t& rows, int64_t& dimension);

class Synthetic {
 public:
  // sample: a FAISS flat index (IxFI), or empty for a built-in spectrum of `dimension` dimensions.
  Synthetic(const std::string& sample_path, int64_t dimension);
  int64_t dimension() const { return dimension_; }
  // `count` unit vectors, row-major. Row i depends only on (seed, i).
  void rows(uint64_t seed, int64_t first, int64_t count, float* out_f32, trawl::ThreadPool& pool) const;

 private:
  int64_t dimension_;
  std::vector<float> mean_f32_;
  std::vector<float> factor_f32_;  // [dimension][dimension]: row = mean + gaussians * factor
};

}  // namespace bench
