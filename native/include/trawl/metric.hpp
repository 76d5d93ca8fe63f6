// The three scores. For all of them LARGER IS NEARER, and of equal scores the lower row comes first.
#pragma once
#include <cstdint>

namespace trawl {

// Files store these values. The first two equal FAISS's metric numbers.
enum class Metric : uint32_t {
  // float64 sum of q[j]*x[j] in index order. Products of float32 are exact in float64.
  kInnerProduct = 0,
  // minus the float64 sum of (q[j]-x[j])^2 in index order, difference and square each rounded, never fused;
  // +0 exactly where x == q.
  kSquaredL2 = 1,
  // inner product / |q| / |x| in that order, norms = sqrt of the float64 sums in index order; 0 where a norm is 0.
  kCosine = 2,
};

const char* metric_name(Metric metric);

// Dimension limits: 127*127*131072 < 2^31 keeps every integer dot product inside int32.
constexpr int64_t kMaxDimension = 131072;
// Throws kBadArgument unless the dimension is in [1, kMaxDimension].
void check_dimension(int64_t dimension);

}  // namespace trawl
