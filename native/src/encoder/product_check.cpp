#include "encoder/product_check.hpp"

#include <cmath>
#include <vector>

#include "float_environment.hpp"

namespace trawl::encoder {

bool sums_as_defined(const Products& products) {
  // Rows for the widest tile and the narrowest one; panels of four groups of columns and of one.
  constexpr int64_t kRows = 7, kDepth = 8, kColumns = kPanel + kLanes;
  const FloatEnvironment environment;
  uint32_t state = 1;
  // Factors from 2^-12 to 2^12 with either sign: products of a sum differ by more than the 24 bits of a float32, so that its order,
  // one rounding less and a wider sum all show.
  const auto next = [&state] {
    state = state * 1664525u + 1013904223u;
    const float size = std::ldexp(1.0f + static_cast<float>(state >> 25) / 128, static_cast<int>(state >> 16) % 25 - 12);
    return to_bf16((state >> 15 & 1) != 0 ? -size : size);
  };
  std::vector<uint16_t> a(kRows * kDepth), packed(kDepth * kColumns);
  for (uint16_t& value : a) value = next();
  for (uint16_t& value : packed) value = next();
  std::vector<float> expected(kRows * kColumns), sums(kRows * kColumns, NAN);
  const auto multiply = [&](const Products& one, std::vector<float>& to) {
    one.multiply({a.data(), kDepth, packed.data(), kDepth, kColumns, kRows, to.data(), kColumns}, 0, 2);
  };
  multiply(*kPortableProducts, expected);
  multiply(products, sums);
  return std::memcmp(sums.data(), expected.data(), sums.size() * sizeof(float)) == 0;
}

}  // namespace trawl::encoder
