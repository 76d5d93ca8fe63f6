// The turn W that rows and queries go through before they are quantised: W = H * signs, where H is the Hadamard
// transform in blocks of 256 (or 64 where 256 does not divide the padded dimension) scaled by 1/16 (or 1/8).
//
// W is exactly orthogonal, its scale a power of two, so inner products are kept and the only rounding is that of the
// 8 (6) butterfly additions. It spreads an outlier coordinate over its block, which keeps max/127, the
// quantisation step, small for encoders that have such coordinates.
//
// Sign of coordinate j: bit (j mod 64) of the (j/64 + 1)-th output of splitmix64 started at the seed; 1 flips.
// The signs and the blocks are part of the file format (kTurnHadamardSigns).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trawl {

class Turn {
 public:
  Turn(int64_t padded_dimension, uint64_t sign_seed);
  void apply(double* values_f64) const;  // [padded_dimension], in place
 private:
  int64_t padded_;
  std::vector<uint64_t> flips_;  // [padded], the sign bit of a double where the coordinate is flipped, else 0
};

}  // namespace trawl
