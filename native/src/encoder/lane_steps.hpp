// The steps between products in bfloat16. lanes.hpp says how a file of an instruction set includes this one.
#include "encoder/lanes.hpp"

namespace trawl::encoder {
namespace {

TRAWL_TARGET void add_bias(const float* values, int64_t values_stride, const float* bias, int64_t rows, int64_t columns, uint16_t* bf16,
                           int64_t bf16_stride) {
  for (int64_t row = 0; row < rows; ++row, values += values_stride, bf16 += bf16_stride) {
    for (int64_t c = 0; c < columns; c += kFloatLanes) store_rounded(bf16 + c, load(values + c) + load(bias + c));
  }
}

TRAWL_TARGET void activate(int activation, const float* values, int64_t values_stride, const float* bias, int64_t rows, int64_t columns,
                           uint16_t* bf16, int64_t bf16_stride) {
  for (int64_t row = 0; row < rows; ++row, values += values_stride, bf16 += bf16_stride) {
    for (int64_t c = 0; c < columns; c += kFloatLanes) {
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

TRAWL_TARGET void normalize(const float* values, const float* bias, const float* weight, const float* shift, float epsilon, int64_t rows,
                            int64_t columns, float* hidden, uint16_t* bf16) {
  for (int64_t row = 0; row < rows; ++row, hidden += columns, bf16 += columns) {
    norm_row(values == nullptr ? nullptr : values + row * columns, bias, weight, shift, epsilon, columns, hidden);
    for (int64_t c = 0; c < columns; c += kFloatLanes) store_rounded(bf16 + c, load(hidden + c));
  }
}

TRAWL_TARGET void softmax(float* scores, int64_t rows, int64_t keys, int64_t stride, float scale, uint16_t* bf16, float* sums) {
  for (int64_t row = 0; row < rows; ++row, scores += stride, bf16 += stride) {
    for (int64_t k = keys; k < stride; ++k) scores[k] = -FLT_MAX;
    Lanes most = load(scores);
    for (int64_t k = kFloatLanes; k < stride; k += kFloatLanes) most = largest(load(scores + k), most);
    float part[16];
    store(part, most);
    float top = part[0];
    for (int i = 1; i < kFloatLanes; ++i) top = part[i] > top ? part[i] : top;
    Lanes total{};
    for (int64_t k = 0; k < stride; k += kFloatLanes) {
      const Lanes score = load(scores + k);
      const Lanes share = chosen(score == -FLT_MAX, Lanes{}, exp_of((score - top) * scale));
      const Bf16Lanes half = rounded(share);
      std::memcpy(bf16 + k, &half, 32);
      total = total + lanes_of(reinterpret_cast<IntLanes>(bits_of(half) << 16));
    }
    sums[row] = sum_of(total);
  }
}

TRAWL_TARGET void divide(const float* values, int64_t values_stride, const float* sums, int64_t rows, int64_t columns, uint16_t* bf16,
                         int64_t bf16_stride) {
  for (int64_t row = 0; row < rows; ++row, values += values_stride, bf16 += bf16_stride) {
    for (int64_t c = 0; c < columns; c += kFloatLanes) store_rounded(bf16 + c, load(values + c) / sums[row]);
  }
}

}  // namespace
}  // namespace trawl::encoder
