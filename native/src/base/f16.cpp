#include "trawl/f16.hpp"

#include <cstring>

#include "base/x86_features.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trawl {

namespace {

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

#if defined(__x86_64__)
__attribute__((target("f16c,avx"))) size_t widen_by_f16c(const uint8_t* f16s, size_t count, float* out) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i f16 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(f16s + 2 * i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(f16));
  }
  return i;
}
#endif

}  // namespace

float f16_to_f32(uint16_t f16) {
  const uint32_t sign = static_cast<uint32_t>(f16 & 0x8000u) << 16;
  const uint32_t exponent = f16 >> 10 & 31, fraction = f16 & 1023;
  if (exponent == 31) return float_of_bits(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

void f16_to_f32_array(const void* f16s, size_t count, float* out) {
  const auto* bytes = static_cast<const uint8_t*>(f16s);
  size_t i = 0;
#if defined(__x86_64__)
  static const bool has_f16c = missing_f16c(X86()).empty();
  if (has_f16c) i = widen_by_f16c(bytes, count, out);
#endif
  for (; i < count; ++i) {
    uint16_t f16;
    std::memcpy(&f16, bytes + 2 * i, 2);
    out[i] = f16_to_f32(f16);
  }
}

size_t first_not_f16(const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of_float(values[i]);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude == 0) continue;
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    if (exponent > 15 || exponent < -24) return i;
    // Bits below the last place of a float16 with this exponent must be zero; the last place of a subnormal one is 2^-24.
    const int dropped = exponent >= -14 ? 13 : 13 + (-14 - exponent);
    const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    if ((significand & ((1u << dropped) - 1)) != 0) return i;
  }
  return count;
}

void f32_to_f16_array(const float* values, size_t count, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of_float(values[i]);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude == 0) {
      out[i] = sign;
      continue;
    }
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    if (exponent >= -14) {
      out[i] = static_cast<uint16_t>(sign | (exponent + 15) << 10 | (magnitude >> 13 & 1023));
    } else {
      const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
      out[i] = static_cast<uint16_t>(sign | significand >> (13 + (-14 - exponent)));
    }
  }
}

}  // namespace trawl
