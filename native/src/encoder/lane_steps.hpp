// The steps between the products, on sixteen float32 values at once. A file of an instruction set defines TRAWL_TARGET, the
// attribute of its functions, and includes this file, so that the same source is compiled for each. Sums, products and divisions
// are rounded one by one (-ffp-contract=off), so all of them have the same bits.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // no value of these types is passed: every function is inlined

namespace trawl::encoder {
namespace {

typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef uint32_t BitLanes __attribute__((vector_size(64)));
typedef uint16_t HalfLanes __attribute__((vector_size(32)));
#define TRAWL_INLINE static inline __attribute__((always_inline)) TRAWL_TARGET

TRAWL_INLINE Lanes load(const float* from) {
  Lanes value;
  std::memcpy(&value, from, 64);
  return value;
}
TRAWL_INLINE void store(float* to, Lanes value) { std::memcpy(to, &value, 64); }
TRAWL_INLINE Lanes all(float value) { return value - Lanes{}; }
TRAWL_INLINE IntLanes bits_of(Lanes value) { return reinterpret_cast<IntLanes>(value); }
TRAWL_INLINE Lanes lanes_of(IntLanes bits) { return reinterpret_cast<Lanes>(bits); }
TRAWL_INLINE Lanes chosen(IntLanes mask, Lanes yes, Lanes no) {
  return lanes_of((mask & bits_of(yes)) | (~mask & bits_of(no)));
}
TRAWL_INLINE Lanes largest(Lanes a, Lanes b) { return chosen(a > b, a, b); }
TRAWL_INLINE Lanes smallest(Lanes a, Lanes b) { return chosen(a < b, a, b); }

// To the nearest bfloat16; zero if the magnitude is below kSmallest.
TRAWL_INLINE HalfLanes rounded(Lanes value) {
  const IntLanes is_small = lanes_of(bits_of(value) & 0x7FFFFFFF) < kSmallest;
  const BitLanes bits = reinterpret_cast<BitLanes>(bits_of(value) & ~is_small);
  return __builtin_convertvector((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16, HalfLanes);
}
TRAWL_INLINE void store_rounded(uint16_t* to, Lanes value) {
  const HalfLanes half = rounded(value);
  std::memcpy(to, &half, 32);
}

// The sum of the lanes, as a tree: 8 + 8, 4 + 4, …
TRAWL_INLINE float sum_of(Lanes value) {
  float part[16];
  store(part, value);
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) part[i] = part[i] + part[i + width];
  }
  return part[0];
}

// e^x for x in [-87, 88]; other values are moved to the nearer end. Relative error below 3e-7.
TRAWL_INLINE Lanes exp_of(Lanes x) {
  x = smallest(largest(x, all(-87.0f)), all(88.0f));
  // Adding 1.5 * 2^23 rounds to an integer.
  const Lanes shift = all(12582912.0f);
  const Lanes shifted = x * 1.44269504088896f + shift;
  const Lanes n = shifted - shift;
  // ln 2 in two parts, of which the first has few digits, so that n times it is exact.
  const Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  // Taylor's series with the coefficients of the minimax polynomial of Cephes' expf.
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const IntLanes exponent = (bits_of(shifted) - bits_of(shift) + 127) << 23;
  return p * lanes_of(exponent);
}

// x/2 * (1 + erf(x/√2)), with formula 7.1.26 of Abramowitz and Stegun: the error of erf is below 2e-7.
TRAWL_INLINE Lanes gelu(Lanes x) {
  const Lanes z = lanes_of(bits_of(x) & 0x7FFFFFFF) * 0.707106781186548f;
  const Lanes t = 1.0f / (z * 0.3275911f + 1.0f);
  Lanes p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = (p * t + 0.254829592f) * t;
  const Lanes tail = p * exp_of(-(z * z));  // 1 - erf(z)
  const Lanes half = x * 0.5f;
  return half * chosen(x < 0.0f, tail, 2.0f - tail);
}

// x/2 * (1 + tanh(√(2/π) (x + 0.044715 x³)))
TRAWL_INLINE Lanes gelu_tanh(Lanes x) {
  const Lanes u = (x + x * x * x * 0.044715f) * 0.797884560802865f;
  return x * (1.0f - 1.0f / (exp_of(u * 2.0f) + 1.0f));
}

TRAWL_TARGET void add_bias(const float* values, const float* bias, int64_t rows, int64_t columns, uint16_t* bf16) {
  for (int64_t row = 0; row < rows; ++row, values += columns, bf16 += columns) {
    for (int64_t c = 0; c < columns; c += kLanes) store_rounded(bf16 + c, load(values + c) + load(bias + c));
  }
}

TRAWL_TARGET void activate(int activation, const float* values, const float* bias, int64_t rows, int64_t columns, uint16_t* bf16) {
  for (int64_t row = 0; row < rows; ++row, values += columns, bf16 += columns) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      const Lanes x = load(values + c) + load(bias + c);
      if (activation == static_cast<int>(Activation::kGelu)) {
        store_rounded(bf16 + c, gelu(x));
      } else if (activation == static_cast<int>(Activation::kGeluTanh)) {
        store_rounded(bf16 + c, gelu_tanh(x));
      } else {
        store_rounded(bf16 + c, largest(x, Lanes{}));
      }
    }
  }
}

TRAWL_TARGET void normalize(const float* values, const float* bias, const float* weight, const float* shift, float epsilon,
                            int64_t rows, int64_t columns, float* hidden, uint16_t* bf16) {
  const float inverse = 1.0f / static_cast<float>(columns);
  for (int64_t row = 0; row < rows; ++row, hidden += columns, bf16 += columns) {
    Lanes total{};
    for (int64_t c = 0; c < columns; c += kLanes) {
      Lanes x = load(hidden + c);
      if (values != nullptr) x = x + (load(values + row * columns + c) + load(bias + c));
      store(hidden + c, x);
      total = total + x;
    }
    const Lanes mean = all(sum_of(total) * inverse);
    Lanes squares{};
    for (int64_t c = 0; c < columns; c += kLanes) {
      const Lanes difference = load(hidden + c) - mean;
      squares = squares + difference * difference;
    }
    const Lanes factor = all(1.0f / std::sqrt(sum_of(squares) * inverse + epsilon));
    for (int64_t c = 0; c < columns; c += kLanes) {
      const Lanes y = (load(hidden + c) - mean) * factor * load(weight + c) + load(shift + c);
      store(hidden + c, y);
      store_rounded(bf16 + c, y);
    }
  }
}

TRAWL_TARGET void softmax(float* scores, int64_t rows, int64_t keys, int64_t stride, float scale, uint16_t* bf16, float* sums) {
  for (int64_t row = 0; row < rows; ++row, scores += stride, bf16 += stride) {
    for (int64_t k = keys; k < stride; ++k) scores[k] = -FLT_MAX;
    Lanes most = load(scores);
    for (int64_t k = kLanes; k < stride; k += kLanes) most = largest(load(scores + k), most);
    float part[16];
    store(part, most);
    float top = part[0];
    for (int i = 1; i < kLanes; ++i) top = part[i] > top ? part[i] : top;
    Lanes total{};
    for (int64_t k = 0; k < stride; k += kLanes) {
      const Lanes score = load(scores + k);
      const Lanes share = chosen(score == -FLT_MAX, Lanes{}, exp_of((score - top) * scale));
      const HalfLanes half = rounded(share);
      std::memcpy(bf16 + k, &half, 32);
      total = total + lanes_of(reinterpret_cast<IntLanes>(__builtin_convertvector(half, BitLanes) << 16));
    }
    sums[row] = sum_of(total);
  }
}

TRAWL_TARGET void divide(const float* values, int64_t values_stride, const float* sums, int64_t rows, int64_t columns,
                         uint16_t* bf16, int64_t bf16_stride) {
  for (int64_t row = 0; row < rows; ++row, values += values_stride, bf16 += bf16_stride) {
    for (int64_t c = 0; c < columns; c += kLanes) store_rounded(bf16 + c, load(values + c) / sums[row]);
  }
}

}  // namespace
}  // namespace trawl::encoder
