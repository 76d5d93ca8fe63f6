// Attention, in bfloat16 with every type of weights.
#include <cmath>
#include <cstring>

#include "encoder/bert_state.hpp"

namespace trawl::encoder {

void BertEncoder::State::attend(const uint16_t* projected, int64_t texts, int64_t length, int64_t first, int64_t last,
                                MemberScratch& scratch, uint16_t* context) {
  const int64_t h = file.shape.hidden, size = h / file.shape.heads;
  for (int64_t text = 0; text < texts; ++text) {
    for (int64_t head = first; head < last; ++head) {
      attend(projected + text * length * 3 * h, length, head * size, scratch);
      products.divide(scratch.context.data(), size, scratch.share_sums.data(), length, size, context + text * length * h + head * size, h);
    }
  }
}

// softmax(query · keyᵀ / √size) · value before the division by the sums of the shares. projected: length x 3*hidden, bf16; head: its
// first column.
void BertEncoder::State::attend(const uint16_t* projected, int64_t length, int64_t head, MemberScratch& scratch) {
  const int64_t h = file.shape.hidden, size = h / file.shape.heads, stride = 3 * h;
  const int64_t lanes = (length + kFloatLanes - 1) / kFloatLanes * kFloatLanes, even = (length + 1) / 2 * 2;
  const float scale = 1.0f / std::sqrt(static_cast<float>(size));
  float *score = scratch.scores.data(), *summed = scratch.context.data(), *share_sum = scratch.share_sums.data();
  uint16_t* share = scratch.shares.data();
  // Keys are the columns: [size/2][v][16][2] per panel. Those past the length are zero, and softmax leaves them out.
  for (int64_t first = 0; first < lanes; first += kPanel) {
    const int64_t columns = std::min<int64_t>(kPanel, lanes - first);
    uint16_t* panel = scratch.keys.data() + first * size;
    for (int64_t j = 0; j < columns; ++j) {
      const uint16_t* key = projected + (first + j) * stride + h + head;
      for (int64_t k = 0; k < size; k += 2) {
        uint32_t pair = 0;
        if (first + j < length) std::memcpy(&pair, key + k, 4);
        std::memcpy(panel + k * columns + 2 * j, &pair, 4);
      }
    }
  }
  products.multiply({projected + head, stride, scratch.keys.data(), size, lanes, length, score, lanes}, 0, panels(lanes));
  if (bytes == nullptr) {
    products.softmax(score, length, length, lanes, scale, share, share_sum);
  } else {
    bytes->small_batch->softmax(score, length, length, lanes, scale, share, share_sum);
  }
  // Values: columns of a head, depth = tokens.
  for (int64_t first = 0; first < size; first += kPanel) {
    const int64_t columns = std::min<int64_t>(kPanel, size - first);
    uint16_t* panel = scratch.values.data() + first * even;
    for (int64_t k = 0; k < even; k += 2) {
      const uint16_t* a = projected + k * stride + 2 * h + head + first;
      const bool has_second = k + 1 < length;
      uint16_t* pairs = panel + k * columns;
      for (int64_t c = 0; c < columns; ++c) {
        pairs[2 * c] = a[c];
        pairs[2 * c + 1] = has_second ? a[stride + c] : 0;
      }
    }
  }
  products.multiply({share, lanes, scratch.values.data(), even, size, length, summed, size}, 0, panels(size));
}

}  // namespace trawl::encoder
