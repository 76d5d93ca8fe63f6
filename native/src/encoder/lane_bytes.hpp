// What all instruction sets of the products in int8 share: the value of a sum, where it goes, and the steps beside the products. A file of
// an instruction set defines TRAWL_NAME, its name, and what lanes.hpp needs, and includes
//   this file;
//   a file that defines multiply_panels(): byte_blocks.hpp for sums in registers, or its own;
//   byte_table.hpp, which makes kTable of both.
#include "encoder/byte_products.hpp"
#include "encoder/lanes.hpp"

namespace trawl::encoder {
namespace {

typedef uint8_t ByteLanes __attribute__((vector_size(16)));

#if defined(TRAWL_WIDE)
TRAWL_INLINE ByteLanes low_bytes_of(IntLanes value) { return (ByteLanes)_mm512_maskz_cvtepi32_epi8(0xFFFF, (__m512i)value); }
#elif defined(TRAWL_AVX2)
TRAWL_INLINE ByteLanes low_bytes_of(IntLanes value) {
  __m256i part[2];
  std::memcpy(part, &value, 64);
  const __m256i low = _mm256_set1_epi32(0xFF);
  // Groups of four: 0 2 1 3
  const __m256i halves = _mm256_packus_epi32(_mm256_and_si256(part[0], low), _mm256_and_si256(part[1], low));
  const __m256i ordered = _mm256_permute4x64_epi64(halves, 0xD8);
  return (ByteLanes)_mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}
#else
TRAWL_INLINE ByteLanes low_bytes_of(IntLanes value) {
  ByteLanes bytes;
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(value[i]);
  return bytes;
}
#endif

// Adding it rounds a number of a magnitude below 2^22 to an integer, which the lowest bits of the sum hold.
constexpr float kShift = 12582912.0f;

TRAWL_INLINE Lanes absolute(Lanes x) { return lanes_of(bits_of(x) & 0x7FFFFFFF); }
// Without NaN, or with numbers of at least 0.
TRAWL_INLINE float largest_of(Lanes value) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  struct {
    Eight low, high;
  } halves;
  std::memcpy(&halves, &value, 64);
  const Eight eight = halves.low > halves.high ? halves.low : halves.high;
  struct {
    Four low, high;
  } quarters;
  std::memcpy(&quarters, &eight, 32);
  const Four four = quarters.low > quarters.high ? quarters.low : quarters.high;
  const float even = four[0] > four[2] ? four[0] : four[2], odd = four[1] > four[3] ? four[1] : four[3];
  return even > odd ? even : odd;
}

// GELU with an error below 2e-4, a fiftieth of what the codes of its values lose where the largest is 2.5. (P(X <= t) - 1/2) / t is a
// polynomial of t², with the smallest error of the result for t from -4 to 4.
TRAWL_INLINE Lanes quick_gelu(Lanes x) {
  const Lanes above = largest(x, all(-4.0f));
  const Lanes t = smallest(above, all(4.0f));
  const Lanes u = t * t;
  Lanes p = u * 2.2781410543e-8f - 1.5986005337e-6f;
  p = p * u + 4.7955480113e-5f;
  p = p * u - 8.1401498755e-4f;
  p = p * u + 8.7723853067e-3f;
  p = p * u - 6.4573101699e-2f;
  p = p * u + 0.39788335562f;
  return above * (p * t + 0.5f);
}

// 2^x for x <= 0, but at least 2^-48, with a relative error below 1e-4: a twentieth of what bfloat16 loses at most.
TRAWL_INLINE Lanes quick_power(Lanes x) {
  x = largest(x, all(-48.0f));
  const Lanes shifted = x + kShift;
  const Lanes r = x - (shifted - kShift);
  Lanes p = r * 0.0551716685f + 0.242611140f;
  p = p * r + 0.693260968f;
  p = p * r + 0.999928057f;
  // Without a sign, because the scores of a damaged model may be anything.
  return reinterpret_cast<Lanes>(reinterpret_cast<BitLanes>(p) + (reinterpret_cast<BitLanes>(shifted) << 23));
}

TRAWL_INLINE Lanes activated(int activation, Lanes x) {
  if (activation == static_cast<int>(Activation::kGelu)) return quick_gelu(x);
  if (activation == static_cast<int>(Activation::kGeluTanh)) return gelu_tanh(x);
  return largest(x, Lanes{});
}

TRAWL_INLINE Lanes load(const uint16_t* from) {
  Bf16Lanes halves;
  std::memcpy(&halves, from, 32);
  return reinterpret_cast<Lanes>(bits_of(halves) << 16);
}
// To the nearest bfloat16, the larger one of two, which takes fewer steps than the even one. Returns the rounded value's bits.
TRAWL_INLINE BitLanes store_nearest(uint16_t* to, Lanes value) {
  const BitLanes bits = (reinterpret_cast<BitLanes>(value) + 0x8000) & 0xFFFF0000;
  const Bf16Lanes half = low_halves_of(bits >> 16);
  std::memcpy(to, &half, 32);
  return bits;
}

// Rows with smaller values only have the codes of zero: the reciprocal of their scale could overflow.
constexpr float kSmallestRow = 1e-30f;

template <typename Value>
TRAWL_INLINE void quantize_row(const Value* values, int64_t columns, uint8_t* codes, float* scale) {
  Lanes most{};
  for (int64_t c = 0; c < columns; c += kFloatLanes) most = largest(absolute(load(values + c)), most);
  const float top = largest_of(most);
  if (!(top > kSmallestRow)) {
    std::memset(codes, kCodeOffset, static_cast<size_t>(columns));
    *scale = 0;
    return;
  }
  *scale = top / 127.0f;
  const float factor = 127.0f / top;
  for (int64_t c = 0; c < columns; c += kFloatLanes) {
    const IntLanes sum = bits_of(load(values + c) * factor + (kShift + kCodeOffset));
    const ByteLanes bytes = low_bytes_of(sum);
    std::memcpy(codes + c, &bytes, 16);
  }
}

TRAWL_INLINE Lanes value_of(IntLanes sum, float row_scale, Lanes column_scale, Lanes bias) {
  return __builtin_convertvector(sum, Lanes) * row_scale * column_scale + bias;
}

TRAWL_INLINE void put(float* to, Lanes value) { store(to, value); }
TRAWL_INLINE void put(uint16_t* to, Lanes value) { store_rounded(to, value); }

// What to do with sixteen values. at: the place of the first one.
template <typename To>
struct Write {
  To* to;
  TRAWL_INLINE_MEMBER void put_at(int64_t at, Lanes value) const { put(to + at, value); }
};
struct Activate {
  int activation;
  uint16_t* to;
  TRAWL_INLINE_MEMBER void put_at(int64_t at, Lanes value) const { store_nearest(to + at, activated(activation, value)); }
};

TRAWL_TARGET void quantize(const uint16_t* values, int64_t rows, int64_t columns, uint8_t* codes, float* scales) {
  for (int64_t row = 0; row < rows; ++row) quantize_row(values + row * columns, columns, codes + row * columns, scales + row);
}

TRAWL_TARGET void normalize(const float* values, const float* weight, const float* shift, float epsilon, int64_t rows, int64_t columns,
                            float* hidden, uint8_t* codes, float* scales) {
  for (int64_t row = 0; row < rows; ++row, hidden += columns) {
    norm_row(values == nullptr ? nullptr : values + row * columns, nullptr, weight, shift, epsilon, columns, hidden);
    quantize_row(hidden, columns, codes + row * columns, scales + row);
  }
}

TRAWL_TARGET void softmax(const float* scores, int64_t rows, int64_t keys, int64_t stride, float scale, uint16_t* bf16, float* sums) {
  const IntLanes index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int64_t full = stride - kFloatLanes;  // before the last lanes
  const IntLanes inside = index < static_cast<int32_t>(keys - full);
  const float factor = scale * 1.44269504088896f;
  for (int64_t row = 0; row < rows; ++row, scores += stride, bf16 += stride) {
    Lanes most = chosen(inside, load(scores + full), all(-FLT_MAX));
    for (int64_t k = 0; k < full; k += kFloatLanes) most = largest(load(scores + k), most);
    const float top = largest_of(most);
    Lanes total{};
    for (int64_t k = 0; k < stride; k += kFloatLanes) {
      Lanes share = quick_power((load(scores + k) - top) * factor);
      if (k == full) share = lanes_of(bits_of(share) & inside);
      total = total + reinterpret_cast<Lanes>(store_nearest(bf16 + k, share));
    }
    sums[row] = sum_of(total);
  }
}

}  // namespace
}  // namespace trawl::encoder
