#include "encoder/product_check.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/float_environment.hpp"

namespace trawl::encoder {

bool sums_as_defined(const Products& products) {
  // Rows for the widest tile and the narrowest one; panels of four groups of columns and of one.
  constexpr int64_t kRows = 7, kDepth = 8, kColumns = kPanel + kFloatLanes;
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

bool sums_as_defined(const ByteProducts& products) {
  // Three tiles of rows, none full; a depth with a rest; panels of four groups of columns and of one. The codes have either sign.
  constexpr int64_t kRows = 35, kDepth = 84, kColumns = kPanel + kFloatLanes;
  const FloatEnvironment environment;
  uint32_t state = 1;
  const auto next = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>(state >> 24) % 255 - 127;
  };
  std::vector<uint8_t> a(kRows * kDepth);
  std::vector<int8_t> packed(kDepth * kColumns);
  for (uint8_t& code : a) code = static_cast<uint8_t>(next() + kCodeOffset);
  for (int8_t& code : packed) code = static_cast<int8_t>(next());
  std::vector<int32_t> offset_corrections(kColumns);
  for (int32_t& sum : offset_corrections) sum = next();
  const std::vector<float> ones(kColumns, 1), zeros(kColumns, 0);
  std::vector<float> expected(kRows * kColumns), values(kRows * kColumns, NAN);
  const auto multiply = [&](const ByteProducts& one, std::vector<float>& to) {
    one.to_float({a.data(), ones.data(), packed.data(), offset_corrections.data(), ones.data(), zeros.data(), kDepth, kColumns, kRows}, 0,
                 2, to.data());
  };
  multiply(*kPortableByteProducts, expected);
  multiply(products, values);
  return std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)) == 0;
}

}  // namespace trawl::encoder
