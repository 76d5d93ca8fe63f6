// The rotation W of rows and queries before quantisation, a randomised Hadamard transform: W = H * signs. H is the Hadamard
// transform in blocks of 256, scaled by 1/16, or in blocks of 64, scaled by 1/8, if 256 does not divide the padded dimension.
//
// W is orthogonal, so it preserves inner products. Its scale is a power of two, so only the 8 (6) butterfly additions round.
// It spreads an outlier coordinate over its block, which keeps the quantisation step, max/127, small.
//
// Sign of coordinate j: bit (j mod 64) of the (j/64 + 1)-th output of splitmix64, started at the seed. A 1 flips the sign.
// The signs and the blocks are part of the file format (kRotationHadamardSigns).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trawl {

class Rotation {
 public:
  Rotation(int64_t padded_dimension, uint64_t sign_seed);
  void apply(double* values_f64) const;  // [padded_dimension], in place
 private:
  int64_t padded_;
  std::vector<uint64_t> flips_;  // [padded], the sign bit of a double where the coordinate is flipped, else 0
};

}  // namespace trawl
