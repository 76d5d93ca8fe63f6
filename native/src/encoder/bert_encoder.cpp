// The order of the steps; products.hpp has the steps themselves.
#include "trawl/bert_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "aligned_buffer.hpp"
#include "encoder/bert_file.hpp"
#include "encoder/products.hpp"
#include "encoder/thread_team.hpp"
#include "float_environment.hpp"
#include "trawl/error.hpp"

namespace trawl::encoder {

namespace {

// A buffer that grows and keeps its memory between runs.
template <typename T>
T* at_least(AlignedBuffer<T>& buffer, int64_t count) {
  if (static_cast<int64_t>(buffer.size()) < count) buffer = AlignedBuffer<T>(static_cast<size_t>(count));
  return buffer.data();
}

int64_t panels(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

// Rows of an item of the steps between products.
constexpr int64_t kRows = 4;

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

}  // namespace

struct BertEncoder::State {
  BertFile file;
  const Products& products;
  ThreadTeam team;
  // Inputs and sums of products, for all tokens of a run.
  AlignedBuffer<uint16_t> input, wide;
  AlignedBuffer<float> sums;
  Head heads[ThreadTeam::kMost];  // one a member

  State(BertFile opened, const Products& chosen) : file(std::move(opened)), products(chosen) {}
  // to = a · matrix, rows apart by depth and columns
  void multiply(const uint16_t* a, const uint16_t* packed, int64_t depth, int64_t columns, int64_t rows, float* to);
  // step(first row, rows) for all rows
  template <typename Step>
  void each_rows(int64_t rows, const Step& step);
  void embed(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden);
  void attend(const uint16_t* attended, int64_t length, int64_t head, Head& own, uint16_t* context_bf16);
  void layer(const BertLayer& weights, int64_t texts, int64_t length, float* hidden);
};

BertEncoder::BertEncoder(const std::string& path, const Products& products)
    : state_(new State(open_bert_file(path), products)) {}
BertEncoder::~BertEncoder() = default;

const BertShape& BertEncoder::shape() const { return state_->file.shape; }
const char* BertEncoder::isa() const { return state_->products.name; }

void BertEncoder::run(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden, int64_t threads) {
  const BertShape& s = state_->file.shape;
  const int64_t longest = s.position_padding < 0 ? s.positions : s.positions - s.position_padding - 1;
  if (length < 1 || length > longest || texts < 1 || texts > (1 << 20)) {
    throw Error(ErrorCode::kBadArgument, std::to_string(texts) + " texts of " + std::to_string(length) +
                                             " tokens; expected at least one text of 1 to " + std::to_string(longest) + " tokens");
  }
  const FloatEnvironment environment;
  struct Pass {
    ThreadTeam& team;
    ~Pass() { team.end(); }
  } pass{state_->team};
  pass.team.begin(threads);
  for (int64_t member = 0; member < pass.team.members(); ++member) state_->heads[member].make_room(length, s.hidden / s.heads);
  state_->embed(ids, types, texts, length, hidden);
  for (const BertLayer& layer : state_->file.layers) state_->layer(layer, texts, length, hidden);
}

void BertEncoder::State::multiply(const uint16_t* a, const uint16_t* packed, int64_t depth, int64_t columns, int64_t rows, float* to) {
  const ProductTask task{a, depth, packed, depth, columns, rows, to, columns};
  if (team.members() == 1) return products.multiply(task, 0, panels(columns));
  team.divide(panels(columns), [&](int64_t panel, int64_t) { products.multiply(task, panel, panel + 1); });
}

template <typename Step>
void BertEncoder::State::each_rows(int64_t rows, const Step& step) {
  if (team.members() == 1) return step(0, rows);
  team.divide((rows + kRows - 1) / kRows, [&](int64_t item, int64_t) { step(item * kRows, std::min(kRows, rows - item * kRows)); });
}

// hidden = norm(words[id] + types[type] + positions[position]), and the same in bf16 in `input`.
void BertEncoder::State::embed(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t h = s.hidden;
  for (int64_t text = 0, token = 0; text < texts; ++text) {
    int64_t counted = 0;
    for (int64_t i = 0; i < length; ++i, ++token) {
      const int32_t id = ids[token], type = types == nullptr ? 0 : types[token];
      if (id < 0 || id >= s.vocabulary) {
        throw Error(ErrorCode::kBadArgument, "token id " + std::to_string(id) + "; expected 0 to " + std::to_string(s.vocabulary - 1), text);
      }
      if (type < 0 || type >= std::max(1, s.token_types)) {
        throw Error(ErrorCode::kBadArgument, "token type " + std::to_string(type) + "; expected 0 to " + std::to_string(std::max(1, s.token_types) - 1), text);
      }
      int64_t position = i;
      // As create_position_ids_from_input_ids in Transformers' RoBERTa.
      if (s.position_padding >= 0) position = id == s.position_padding ? id : s.position_padding + ++counted;
      const float* word = file.words + id * h;
      const float* place = file.positions + position * h;
      float* to = hidden + token * h;
      if (file.types == nullptr) {
        for (int64_t c = 0; c < h; ++c) to[c] = word[c] + place[c];
      } else {
        const float* kind = file.types + type * h;
        for (int64_t c = 0; c < h; ++c) to[c] = word[c] + kind[c] + place[c];
      }
    }
  }
  products.normalize(nullptr, nullptr, file.norm.weight, file.norm.bias, s.epsilon, texts * length, h, hidden,
                     at_least(input, texts * length * std::max(s.hidden, s.intermediate)));
}

// softmax(query · keyᵀ / √size) · value for one head of a text. attended: length x 3*hidden, bf16; head: its first column.
void BertEncoder::State::attend(const uint16_t* attended, int64_t length, int64_t head, Head& own, uint16_t* to) {
  const int64_t h = file.shape.hidden, size = h / file.shape.heads, stride = 3 * h;
  const int64_t lanes = (length + kLanes - 1) / kLanes * kLanes, even = (length + 1) / 2 * 2;
  const float scale = 1.0f / std::sqrt(static_cast<float>(size));
  float *score = own.scores.data(), *summed = own.context.data(), *share_sum = own.share_sums.data();
  uint16_t* share = own.shares.data();
  // Keys are the columns: [size/2][v][16][2] per panel. Those past the length are zero, and softmax leaves them out.
  for (int64_t first = 0; first < lanes; first += kPanel) {
    const int64_t columns = std::min<int64_t>(kPanel, lanes - first);
    uint16_t* panel = own.keys.data() + first * size;
    for (int64_t j = 0; j < columns; ++j) {
      const uint16_t* key = attended + (first + j) * stride + h + head;
      for (int64_t k = 0; k < size; k += 2) {
        uint32_t pair = 0;
        if (first + j < length) std::memcpy(&pair, key + k, 4);
        std::memcpy(panel + k * columns + 2 * j, &pair, 4);
      }
    }
  }
  products.multiply({attended + head, stride, own.keys.data(), size, lanes, length, score, lanes}, 0, panels(lanes));
  products.softmax(score, length, length, lanes, scale, share, share_sum);
  // Values: columns of a head, depth = tokens.
  for (int64_t first = 0; first < size; first += kPanel) {
    const int64_t columns = std::min<int64_t>(kPanel, size - first);
    uint16_t* panel = own.values.data() + first * even;
    for (int64_t k = 0; k < even; k += 2) {
      const uint16_t* a = attended + k * stride + 2 * h + head + first;
      const bool has_second = k + 1 < length;
      uint16_t* pairs = panel + k * columns;
      for (int64_t c = 0; c < columns; ++c) {
        pairs[2 * c] = a[c];
        pairs[2 * c + 1] = has_second ? a[stride + c] : 0;
      }
    }
  }
  products.multiply({share, lanes, own.values.data(), even, size, length, summed, size}, 0, panels(size));
  products.divide(summed, size, share_sum, length, size, to + head, h);
}

// `input` holds the bf16 values of hidden before and after.
void BertEncoder::State::layer(const BertLayer& w, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t tokens = texts * length, h = s.hidden, i = s.intermediate, widest = std::max(3 * h, i);
  uint16_t* in = input.data();
  float* sum = at_least(sums, tokens * widest);
  uint16_t* inner = at_least(wide, tokens * widest);

  multiply(in, w.attention.packed, h, 3 * h, tokens, sum);
  each_rows(tokens, [&](int64_t row, int64_t rows) { products.add_bias(sum + row * 3 * h, w.attention.bias, rows, 3 * h, inner + row * 3 * h); });
  team.divide(texts * s.heads, [&](int64_t item, int64_t member) {
    const int64_t first = item / s.heads * length;
    attend(inner + first * 3 * h, length, item % s.heads * (h / s.heads), heads[member], in + first * h);
  });
  multiply(in, w.attention_output.packed, h, h, tokens, sum);
  each_rows(tokens, [&](int64_t row, int64_t rows) {
    products.normalize(sum + row * h, w.attention_output.bias, w.attention_norm.weight, w.attention_norm.bias, s.epsilon, rows, h,
                       hidden + row * h, in + row * h);
  });

  multiply(in, w.intermediate.packed, h, i, tokens, sum);
  each_rows(tokens, [&](int64_t row, int64_t rows) {
    products.activate(s.activation, sum + row * i, w.intermediate.bias, rows, i, inner + row * i);
  });
  multiply(inner, w.output.packed, i, h, tokens, sum);
  each_rows(tokens, [&](int64_t row, int64_t rows) {
    products.normalize(sum + row * h, w.output.bias, w.output_norm.weight, w.output_norm.bias, s.epsilon, rows, h, hidden + row * h,
                       in + row * h);
  });
}

}  // namespace trawl::encoder
