// The order of the steps; products.hpp has the steps themselves.
#include "trawl/bert_encoder.hpp"

#include "base/float_environment.hpp"
#include "encoder/bert_state.hpp"
#include "trawl/error.hpp"

namespace trawl::encoder {

// Opens the file first, so that a damaged file is reported even on a machine without the instruction set.
BertEncoder::BertEncoder(const std::string& path, const std::string& isa) {
  BertFile file = open_bert_file(path);
  const ByteChoice* bytes = file.weights == WeightType::kInt8 ? &choose_byte_products(isa) : nullptr;
  const Products& products = bytes == nullptr ? select_products(isa) : products_beside(*bytes->small_batch);
  state_.reset(new State(std::move(file), products, bytes));
}
BertEncoder::BertEncoder(const std::string& path, const ByteChoice& bytes)
    : state_(new State(open_bert_file(path), products_beside(*bytes.small_batch), &bytes)) {
  if (weights() != WeightType::kInt8) throw Error(ErrorCode::kBadArgument, "the weights of " + path + " are not int8");
}
BertEncoder::~BertEncoder() = default;

const BertShape& BertEncoder::shape() const { return state_->file.shape; }
WeightType BertEncoder::weights() const { return state_->file.weights; }
const char* BertEncoder::isa() const { return state_->bytes == nullptr ? state_->products.name : state_->bytes->for_long_texts().name; }

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
  for (int64_t member = 0; member < pass.team.members(); ++member)
    state_->scratches[member].make_room(s, texts * length, length, state_->bytes != nullptr);
  state_->embed(ids, types, texts, length, hidden);
  for (const BertLayer& layer : state_->file.layers) {
    if (state_->bytes == nullptr) {
      state_->bf16_layer(layer, texts, length, hidden);
    } else {
      state_->byte_layer(layer, texts, length, hidden);
    }
  }
  state_->file.mapping->require_unchanged();
}

// hidden = norm(words[id] + types[type] + positions[position]), and the same as the input of the first layer.
void BertEncoder::State::embed(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t h = s.hidden;
  for (int64_t text = 0, token = 0; text < texts; ++text) {
    int64_t counted = 0;
    for (int64_t i = 0; i < length; ++i, ++token) {
      const int32_t id = ids[token], type = types == nullptr ? 0 : types[token];
      if (id < 0 || id >= s.vocabulary) {
        throw Error(ErrorCode::kBadArgument, "token id " + std::to_string(id) + "; expected 0 to " + std::to_string(s.vocabulary - 1),
                    text);
      }
      if (type < 0 || type >= std::max(1, s.token_types)) {
        throw Error(ErrorCode::kBadArgument,
                    "token type " + std::to_string(type) + "; expected 0 to " + std::to_string(std::max(1, s.token_types) - 1), text);
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
  const int64_t tokens = texts * length;
  if (bytes == nullptr) {
    products.normalize(nullptr, nullptr, file.norm.weight, file.norm.bias, s.epsilon, tokens, h, hidden, at_least(input, tokens * h));
  } else {
    bytes->for_rows(tokens).normalize(nullptr, file.norm.weight, file.norm.bias, s.epsilon, tokens, h, hidden, at_least(codes, tokens * h),
                                      at_least(code_scales, tokens));
  }
}

}  // namespace trawl::encoder
