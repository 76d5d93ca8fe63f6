// A layer whose products with weights are in int8.
#include "encoder/bert_state.hpp"

namespace trawl::encoder {

// `codes` and `code_scales` hold hidden as codes before and after.
void BertEncoder::State::byte_layer(const BertLayer& w, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t tokens = texts * length, h = s.hidden, i = s.intermediate, size = h / s.heads;
  const ByteProducts& steps = bytes->of(tokens);
  uint8_t* code = codes.data();
  float* scale = code_scales.data();
  float* sum = at_least(sums, tokens * h);
  // Query, key and value, then the values of the activation.
  uint16_t* inner = at_least(wide, tokens * std::max(3 * h, i));
  uint16_t* context = at_least(input, tokens * h);
  const auto task_of = [&](const Dense& dense, int64_t depth, int64_t columns) {
    return ByteTask{code, scale, dense.codes, dense.first_sums, dense.scales, dense.bias, depth, columns, tokens};
  };
  const auto quantize = [&](const uint16_t* values, int64_t columns) {
    each_rows(tokens, [&](int64_t row, int64_t rows) { steps.quantize(values + row * columns, rows, columns, code + row * columns, scale + row); });
  };
  const auto add_and_normalize = [&](const Dense& dense, int64_t depth, const Norm& norm) {
    const ByteTask task = task_of(dense, depth, h);
    each_panels(h, [&](int64_t first, int64_t last) { steps.to_float(task, first, last, sum); });
    each_rows(tokens, [&](int64_t row, int64_t rows) {
      steps.normalize(sum + row * h, norm.weight, norm.bias, s.epsilon, rows, h, hidden + row * h, code + row * h, scale + row);
    });
  };

  const ByteTask attention = task_of(w.attention, h, 3 * h);
  each_panels(3 * h, [&](int64_t first, int64_t last) { steps.to_bf16(attention, first, last, inner); });
  team.divide(texts * s.heads, [&](int64_t item, int64_t member) {
    const int64_t first = item / s.heads * length, head = item % s.heads * size;
    Head& own = heads[member];
    attend(inner + first * 3 * h, length, head, own);
    products.divide(own.context.data(), size, own.share_sums.data(), length, size, context + first * h + head, h);
  });
  quantize(context, h);
  add_and_normalize(w.attention_output, h, w.attention_norm);

  const ByteTask intermediate = task_of(w.intermediate, h, i);
  each_panels(i, [&](int64_t first, int64_t last) { steps.to_activation(intermediate, s.activation, first, last, inner); });
  quantize(inner, i);
  add_and_normalize(w.output, i, w.output_norm);
}

}  // namespace trawl::encoder
