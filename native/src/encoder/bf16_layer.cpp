// A layer whose products are in bfloat16.
#include "encoder/bert_state.hpp"

namespace trawl::encoder {

// `input` holds the bf16 values of hidden before and after.
void BertEncoder::State::bf16_layer(const BertLayer& w, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t tokens = texts * length, h = s.hidden, i = s.intermediate;
  uint16_t* in = input.data();
  float* sum = at_least(sums, tokens * h);
  // Query, key and value, then the values of the activation.
  uint16_t* inner = at_least(wide, tokens * std::max(3 * h, i));
  uint16_t* context = at_least(contexts, tokens * h);
  // step(sums, first column, columns) for the sums of each panel of hidden · matrix; their rows are kPanel apart.
  const auto multiply = [&](const Dense& dense, int64_t columns, int64_t first, int64_t last, int64_t member, const auto& step) {
    float* sums_of_panel = scratches[member].sums.data();
    for (int64_t c = first * kPanel; c < std::min(last * kPanel, columns); c += kPanel) {
      const int64_t width = std::min<int64_t>(kPanel, columns - c);
      products.multiply({in, h, dense.packed + c * h, h, width, tokens, sums_of_panel, kPanel}, 0, 1);
      step(sums_of_panel, c, width);
    }
  };
  const auto add_and_normalize = [&](const uint16_t* a, const Dense& dense, int64_t depth, const Norm& norm) {
    const ProductTask task{a, depth, dense.packed, depth, h, tokens, sum, h};
    each_range(panels(h), [&](int64_t first, int64_t last, int64_t) { products.multiply(task, first, last); });
    each_rows(tokens, [&](int64_t row, int64_t rows) {
      products.normalize(sum + row * h, dense.bias, norm.weight, norm.bias, s.epsilon, rows, h, hidden + row * h, in + row * h);
    });
  };

  const auto project = [&](int64_t first, int64_t last, int64_t member) {
    multiply(w.attention, 3 * h, first, last, member, [&](const float* values, int64_t c, int64_t columns) {
      products.add_bias(values, kPanel, w.attention.bias + c, tokens, columns, inner + c, 3 * h);
    });
  };
  attention(project, texts, length, inner, context);
  add_and_normalize(context, w.attention_output, h, w.attention_norm);

  each_range(panels(i), [&](int64_t first, int64_t last, int64_t member) {
    multiply(w.intermediate, i, first, last, member, [&](const float* values, int64_t c, int64_t columns) {
      products.activate(s.activation, values, kPanel, w.intermediate.bias + c, tokens, columns, inner + c, i);
    });
  });
  add_and_normalize(inner, w.output, i, w.output_norm);
}

}  // namespace trawl::encoder
