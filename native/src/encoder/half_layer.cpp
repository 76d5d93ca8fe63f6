// A layer whose products are in bfloat16.
#include "encoder/bert_state.hpp"

namespace trawl::encoder {

// `input` holds the bf16 values of hidden before and after.
void BertEncoder::State::half_layer(const BertLayer& w, int64_t texts, int64_t length, float* hidden) {
  const BertShape& s = file.shape;
  const int64_t tokens = texts * length, h = s.hidden, i = s.intermediate, widest = std::max(3 * h, i), size = h / s.heads;
  uint16_t* in = input.data();
  float* sum = at_least(sums, tokens * widest);
  uint16_t* inner = at_least(wide, tokens * widest);
  // sum = a · matrix, rows apart by depth and columns
  const auto multiply = [&](const uint16_t* a, const Dense& dense, int64_t depth, int64_t columns) {
    const ProductTask task{a, depth, dense.packed, depth, columns, tokens, sum, columns};
    each_panels(columns, [&](int64_t first, int64_t last) { products.multiply(task, first, last); });
  };
  const auto normalize = [&](const Dense& dense, const Norm& norm) {
    each_rows(tokens, [&](int64_t row, int64_t rows) {
      products.normalize(sum + row * h, dense.bias, norm.weight, norm.bias, s.epsilon, rows, h, hidden + row * h, in + row * h);
    });
  };

  multiply(in, w.attention, h, 3 * h);
  each_rows(tokens, [&](int64_t row, int64_t rows) { products.add_bias(sum + row * 3 * h, w.attention.bias, rows, 3 * h, inner + row * 3 * h); });
  team.divide(texts * s.heads, [&](int64_t item, int64_t member) {
    const int64_t first = item / s.heads * length, head = item % s.heads * size;
    Head& own = heads[member];
    attend(inner + first * 3 * h, length, head, own);
    products.divide(own.context.data(), size, own.share_sums.data(), length, size, in + first * h + head, h);
  });
  multiply(in, w.attention_output, h, h);
  normalize(w.attention_output, w.attention_norm);

  multiply(in, w.intermediate, h, i);
  each_rows(tokens, [&](int64_t row, int64_t rows) {
    products.activate(s.activation, sum + row * i, w.intermediate.bias, rows, i, inner + row * i);
  });
  multiply(inner, w.output, i, h);
  normalize(w.output, w.output_norm);
}

}  // namespace trawl::encoder
