// What an encoder keeps between the steps of a pass and between passes.
#pragma once
#include <algorithm>

#include "aligned_buffer.hpp"
#include "encoder/bert_file.hpp"
#include "encoder/byte_choice.hpp"
#include "encoder/products.hpp"
#include "encoder/thread_team.hpp"

namespace trawl::encoder {

// A buffer that grows and keeps its memory between runs.
template <typename T>
T* at_least(AlignedBuffer<T>& buffer, int64_t count) {
  if (static_cast<int64_t>(buffer.size()) < count) buffer = AlignedBuffer<T>(static_cast<size_t>(count));
  return buffer.data();
}

inline int64_t panels(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

// What one thread needs for one head of one text.
struct Head {
  AlignedBuffer<uint16_t> keys, values, shares;
  AlignedBuffer<float> scores, context, share_sums;

  void make_room(int64_t length, int64_t size) {
    const int64_t lanes = (length + kLanes - 1) / kLanes * kLanes;
    at_least(keys, lanes * size);
    at_least(values, (length + 1) / 2 * 2 * size);
    at_least(scores, length * lanes);
    at_least(shares, length * lanes);
    at_least(share_sums, length);
    at_least(context, length * size);
  }
};

struct BertEncoder::State {
  BertFile file;
  const Products& products;  // of attention, and of all products without `bytes`
  const ByteChoice* bytes;  // null unless the weights are int8
  ThreadTeam team;
  // Inputs and sums of products, for all tokens of a run.
  AlignedBuffer<uint16_t> input, wide;
  AlignedBuffer<uint8_t> codes;
  AlignedBuffer<float> sums, code_scales;
  Head heads[ThreadTeam::kMost];  // one a member

  State(BertFile opened, const Products& chosen, const ByteChoice* chosen_bytes)
      : file(std::move(opened)), products(chosen), bytes(chosen_bytes) {}

  // step(first row, rows) for all rows
  template <typename Step>
  void each_rows(int64_t rows, const Step& step) {
    constexpr int64_t kRows = 4;  // of an item
    if (team.members() == 1) return step(0, rows);
    team.divide((rows + kRows - 1) / kRows, [&](int64_t item, int64_t) { step(item * kRows, std::min(kRows, rows - item * kRows)); });
  }
  // step(first panel, last panel) for all panels of a product
  template <typename Step>
  void each_panels(int64_t columns, const Step& step) {
    if (team.members() == 1) return step(0, panels(columns));
    team.divide(panels(columns), [&](int64_t panel, int64_t) { step(panel, panel + 1); });
  }

  void embed(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden);
  // Sums of values by shares for one head of a text, and the sum of the shares, in `own`.
  void attend(const uint16_t* attended, int64_t length, int64_t head, Head& own);
  void half_layer(const BertLayer& weights, int64_t texts, int64_t length, float* hidden);
  void byte_layer(const BertLayer& weights, int64_t texts, int64_t length, float* hidden);
};

}  // namespace trawl::encoder
