// A layer whose products with weights are in int8.
#include "encoder/bert_state.hpp"

namespace trawl::encoder {

// With at most this number of rows each thread quantizes all values for itself: that takes less time than to wait for the rows of others.
constexpr int64_t kFewRows = 32;

// `codes` and `code_scales` hold hidden as codes before and after.
void BertEncoder::State::byte_layer(const BertLayer& w, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t tokens = texts * length, h = s.hidden, i = s.intermediate;
  const ByteProducts& steps = bytes->for_rows(tokens);
  uint8_t* code = codes.data();
  float* scale = code_scales.data();
  float* sum = at_least(sums, tokens * h);
  // Query, key and value, then the values of the activation.
  uint16_t* inner = at_least(wide, tokens * std::max(3 * h, i));
  uint16_t* context = at_least(contexts, tokens * h);
  const auto task_of = [&](const uint8_t* codes_of_rows, const float* scales, const Dense& dense, int64_t depth, int64_t columns) {
    return ByteTask{codes_of_rows, scales, dense.codes, dense.offset_corrections, dense.scales, dense.bias, depth, columns, tokens};
  };
  const auto quantize = [&](const uint16_t* values, int64_t depth, int64_t row, int64_t rows, MemberScratch& to) {
    steps.quantize(values + row * depth, rows, depth, to.codes.data() + row * depth, to.code_scales.data() + row);
  };
  // hidden = norm(values · matrix + hidden)
  const auto add_and_normalize = [&](const uint16_t* values, const Dense& dense, int64_t depth, const Norm& norm) {
    const bool each_for_itself = tokens <= kFewRows;
    if (!each_for_itself) each_rows(tokens, [&](int64_t row, int64_t rows) { quantize(values, depth, row, rows, scratches[0]); });
    each_range(panels(h), [&](int64_t first, int64_t last, int64_t member) {
      MemberScratch& quantized = scratches[each_for_itself ? member : 0];
      if (each_for_itself) quantize(values, depth, 0, tokens, quantized);
      steps.to_float(task_of(quantized.codes.data(), quantized.code_scales.data(), dense, depth, h), first, last, sum);
    });
    each_rows(tokens, [&](int64_t row, int64_t rows) {
      steps.normalize(sum + row * h, norm.weight, norm.bias, s.epsilon, rows, h, hidden + row * h, code + row * h, scale + row);
    });
  };

  const ByteTask project = task_of(code, scale, w.attention, h, 3 * h);
  attention([&](int64_t first, int64_t last, int64_t) { steps.to_bf16(project, first, last, inner); }, texts, length, inner, context);
  add_and_normalize(context, w.attention_output, h, w.attention_norm);

  const ByteTask widen = task_of(code, scale, w.intermediate, h, i);
  each_range(panels(i), [&](int64_t first, int64_t last, int64_t) { steps.to_activation(widen, s.activation, first, last, inner); });
  add_and_normalize(inner, w.output, i, w.output_norm);
}

}  // namespace trawl::encoder
