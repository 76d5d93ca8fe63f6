// A BERT encoder in float64, for tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "bert_files.hpp"

namespace exact_pass {

using namespace trawl::encoder;

// The values of a matrix [columns][depth] in a file of that type.
inline std::vector<float> stored(const std::vector<float>& matrix, size_t depth, WeightType type) {
  std::vector<float> values = matrix;
  for (size_t from = 0; from < values.size(); from += depth) {
    const float scale = bert_files::scale_of(matrix.data() + from, static_cast<int64_t>(depth));
    for (size_t i = from; i < from + depth; ++i) {
      values[i] = type == WeightType::kInt8 ? bert_files::code_of(values[i], scale) * scale : from_bf16(to_bf16(values[i]));
    }
  }
  return values;
}

// The encoder in float64, with the weights as the file has them and everything else exact.
inline std::vector<double> hidden_of(const bert_files::Weights& w, const std::vector<int32_t>& ids, const std::vector<int32_t>& types) {
  const BertShape& s = w.shape;
  const size_t n = ids.size(), h = s.hidden;
  size_t part = 0;
  const auto next = [&]() -> const std::vector<float>& { return w.parts[part++]; };
  const auto norm = [&](std::vector<double>& x) {
    const std::vector<float>& both = next();
    for (size_t t = 0; t < n; ++t) {
      double mean = 0, square = 0;
      for (size_t c = 0; c < h; ++c) mean += x[t * h + c] / h;
      for (size_t c = 0; c < h; ++c) square += (x[t * h + c] - mean) * (x[t * h + c] - mean) / h;
      for (size_t c = 0; c < h; ++c) x[t * h + c] = (x[t * h + c] - mean) / std::sqrt(square + s.epsilon) * both[c] + both[h + c];
    }
  };
  const auto dense = [&](const std::vector<double>& x, size_t depth, size_t columns) {
    const std::vector<float>&matrix = next(), &bias = next();
    const std::vector<float> weights = stored(matrix, depth, w.type);
    std::vector<double> y(n * columns);
    for (size_t t = 0; t < n; ++t) {
      for (size_t c = 0; c < columns; ++c) {
        double sum = bias[c];
        for (size_t k = 0; k < depth; ++k) sum += x[t * depth + k] * weights[c * depth + k];
        y[t * columns + c] = sum;
      }
    }
    return y;
  };
  const std::vector<float>&words = next(), &positions = next();
  const std::vector<float>* kinds = s.token_types > 0 ? &next() : nullptr;
  std::vector<double> x(n * h);
  int32_t counted = 0;
  for (size_t t = 0; t < n; ++t) {
    size_t position = t;
    if (s.position_padding >= 0) position = ids[t] == s.position_padding ? ids[t] : s.position_padding + ++counted;
    for (size_t c = 0; c < h; ++c) {
      x[t * h + c] =
          static_cast<double>(words[ids[t] * h + c]) + positions[position * h + c] + (kinds == nullptr ? 0 : (*kinds)[types[t] * h + c]);
    }
  }
  norm(x);
  for (int layer = 0; layer < s.layers; ++layer) {
    const std::vector<double> a = dense(x, h, 3 * h);
    std::vector<double> context(n * h);
    const size_t size = h / s.heads;
    for (size_t head = 0; head < h; head += size) {
      for (size_t t = 0; t < n; ++t) {
        std::vector<double> share(n);
        double total = 0;
        for (size_t j = 0; j < n; ++j) {
          double dot = 0;
          for (size_t c = 0; c < size; ++c) dot += a[t * 3 * h + head + c] * a[j * 3 * h + h + head + c];
          total += share[j] = std::exp(dot / std::sqrt(static_cast<double>(size)));
        }
        for (size_t j = 0; j < n; ++j) {
          for (size_t c = 0; c < size; ++c) context[t * h + head + c] += share[j] / total * a[j * 3 * h + 2 * h + head + c];
        }
      }
    }
    const std::vector<double> attended = dense(context, h, h);
    for (size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
    norm(x);
    std::vector<double> inner = dense(x, h, s.intermediate);
    for (double& v : inner) {
      if (s.activation == 0) v = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
      if (s.activation == 1) v = v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      if (s.activation == 2) v = std::max(v, 0.0);
    }
    const std::vector<double> output = dense(inner, s.intermediate, h);
    for (size_t i = 0; i < x.size(); ++i) x[i] += output[i];
    norm(x);
  }
  return x;
}

inline double smallest_cosine(const std::vector<float>& a, const std::vector<double>& b, size_t h) {
  double least = 1;
  for (size_t from = 0; from < a.size(); from += h) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t c = from; c < from + h; ++c) ab += a[c] * b[c], aa += static_cast<double>(a[c]) * a[c], bb += b[c] * b[c];
    least = std::min(least, ab / std::sqrt(aa * bb));
  }
  return least;
}

}  // namespace exact_pass
