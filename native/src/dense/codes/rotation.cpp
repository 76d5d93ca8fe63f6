#include "dense/codes/rotation.hpp"

#include <cstring>

namespace trawl {

namespace {

uint64_t splitmix64_next(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

template <size_t kBlock>
void hadamard(double* values) {
  for (size_t half = 1; half < kBlock; half *= 2) {
    for (size_t start = 0; start < kBlock; start += 2 * half) {
      double* low = values + start;
      double* high = low + half;
      for (size_t i = 0; i < half; ++i) {
        const double a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
  constexpr double kScale = kBlock == 256 ? 1.0 / 16 : 1.0 / 8;
  for (size_t i = 0; i < kBlock; ++i) values[i] *= kScale;
}

}  // namespace

Rotation::Rotation(int64_t padded_dimension, uint64_t sign_seed) : padded_(padded_dimension), flips_(padded_dimension) {
  uint64_t state = sign_seed;
  for (int64_t base = 0; base < padded_; base += 64) {
    const uint64_t bits = splitmix64_next(state);
    for (int64_t j = 0; j < 64; ++j) flips_[base + j] = (bits >> j & 1) << 63;
  }
}

void Rotation::apply(double* values) const {
  for (int64_t j = 0; j < padded_; ++j) {
    uint64_t word;
    std::memcpy(&word, values + j, 8);
    word ^= flips_[j];
    std::memcpy(values + j, &word, 8);
  }
  if (padded_ % 256 == 0) {
    for (int64_t base = 0; base < padded_; base += 256) hadamard<256>(values + base);
  } else {
    for (int64_t base = 0; base < padded_; base += 64) hadamard<64>(values + base);
  }
}

}  // namespace trawl
