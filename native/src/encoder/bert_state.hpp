// What an encoder keeps between the steps of a pass and between passes.
#pragma once
#include <algorithm>

#include "base/aligned_buffer.hpp"
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

// What one thread needs: for one head of one text, for the sums of a panel, and for codes that it makes for itself.
struct MemberScratch {
  AlignedBuffer<uint16_t> keys, values, shares;
  AlignedBuffer<float> scores, context, share_sums, sums;
  AlignedBuffer<uint8_t> codes;
  AlignedBuffer<float> code_scales;

  void make_room(const BertShape& shape, int64_t tokens, int64_t length, bool bytes) {
    const int64_t size = shape.hidden / shape.heads;
    const int64_t lanes = (length + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
    at_least(keys, lanes * size);
    at_least(values, (length + 1) / 2 * 2 * size);
    at_least(scores, length * lanes);
    at_least(shares, length * lanes);
    at_least(share_sums, length);
    at_least(context, length * size);
    if (bytes) {
      at_least(codes, tokens * std::max(shape.hidden, shape.intermediate));
      at_least(code_scales, tokens);
    } else {
      at_least(sums, tokens * kPanel);
    }
  }
};

struct BertEncoder::State {
  BertFile file;
  const Products& products;  // of attention, and of all products without `bytes`
  const ByteChoice* bytes;   // null unless the weights are int8
  ThreadTeam team;
  // Inputs and sums of products, for all tokens of a run.
  AlignedBuffer<uint16_t> input, wide, contexts;
  AlignedBuffer<uint8_t> codes;
  AlignedBuffer<float> sums, code_scales;
  MemberScratch scratches[ThreadTeam::kMost];  // one a member

  State(BertFile opened, const Products& chosen, const ByteChoice* chosen_bytes)
      : file(std::move(opened)), products(chosen), bytes(chosen_bytes) {}

  // step(first, last, member) for [0, count) in consecutive ranges, one a member: products read each panel while they prefetch the next.
  template <typename Step>
  void each_range(int64_t count, const Step& step) {
    const int64_t ranges = std::min(count, team.members());
    team.divide(ranges, [&](int64_t range, int64_t member) { step(count * range / ranges, count * (range + 1) / ranges, member); });
  }
  // step(first row, rows) for all rows
  template <typename Step>
  void each_rows(int64_t rows, const Step& step) {
    each_range(rows, [&](int64_t first, int64_t last, int64_t) { step(first, last - first); });
  }

  // project(first panel, last panel, member) computes query, key and value of all tokens, side by side in `projected`; then attention
  // of each head, into `context`.
  template <typename Project>
  void attention(const Project& project, int64_t texts, int64_t length, const uint16_t* projected, uint16_t* context) {
    const int64_t hidden = file.shape.hidden, heads = file.shape.heads, size = hidden / heads, each = panels(hidden);
    if (hidden % kPanel == 0 && kPanel % size == 0 && each % team.members() == 0) {
      // A head's query, key and value come from the thread that needs them, so no thread waits for another.
      each_range(each, [&](int64_t first, int64_t last, int64_t member) {
        for (int64_t part = 0; part < 3; ++part) project(part * each + first, part * each + last, member);
        attend(projected, texts, length, first * kPanel / size, last * kPanel / size, scratches[member], context);
      });
      return;
    }
    each_range(panels(3 * hidden), project);
    each_range(heads, [&](int64_t first, int64_t last, int64_t member) {
      attend(projected, texts, length, first, last, scratches[member], context);
    });
  }

  void embed(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden);
  // The heads first … last - 1 of all texts.
  void attend(const uint16_t* projected, int64_t texts, int64_t length, int64_t first, int64_t last, MemberScratch& scratch,
              uint16_t* context);
  // Sums of values by shares for one head of a text, and the sum of the shares, in `scratch`.
  void attend(const uint16_t* projected, int64_t length, int64_t head, MemberScratch& scratch);
  void bf16_layer(const BertLayer& weights, int64_t texts, int64_t length, float* hidden);
  void byte_layer(const BertLayer& weights, int64_t texts, int64_t length, float* hidden);
};

}  // namespace trawl::encoder
