// Files of BERT encoders with random weights, for tests and the benchmark.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "encoder/bert_file.hpp"
#include "encoder/byte_products.hpp"
#include "encoder/products.hpp"

namespace bert_files {

// [rows = outputs][depth] as PyTorch stores it, packed as products.hpp defines.
inline std::vector<uint16_t> packed(const std::vector<float>& matrix, int64_t depth, int64_t columns) {
  std::vector<uint16_t> result(static_cast<size_t>(depth * columns));
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t first = column / 64 * 64, width = std::min<int64_t>(64, columns - first);
    for (int64_t k = 0; k < depth; ++k) {
      result[first * depth + k / 2 * width * 2 + (column - first) * 2 + k % 2] = trawl::encoder::to_bf16(matrix[column * depth + k]);
    }
  }
  return result;
}

// An int8 matrix, as byte_products.hpp defines it.
struct Codes {
  std::vector<int8_t> packed;
  std::vector<int32_t> offset_corrections;
  std::vector<float> scales;
};

inline float scale_of(const float* column, int64_t depth) {
  float most = 0;
  for (int64_t k = 0; k < depth; ++k) most = std::max(most, std::fabs(column[k]));
  return most < 1e-30f ? 1 : most / 127;
}
inline int8_t code_of(float value, float scale) { return static_cast<int8_t>(std::lround(value / scale)); }

inline Codes quantized(const std::vector<float>& matrix, int64_t depth, int64_t columns) {
  Codes result{std::vector<int8_t>(static_cast<size_t>(depth * columns)), {}, {}};
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t first = column / 64 * 64, width = std::min<int64_t>(64, columns - first);
    const float* values = matrix.data() + column * depth;
    const float scale = scale_of(values, depth);
    int32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int8_t code = code_of(values[k], scale);
      sum += code;
      result.packed[first * depth + k / 4 * width * 4 + (column - first) * 4 + k % 4] = code;
    }
    result.offset_corrections.push_back(-trawl::encoder::kCodeOffset * sum);
    result.scales.push_back(scale);
  }
  return result;
}

struct Weights {
  trawl::encoder::BertShape shape;
  trawl::encoder::WeightType type;
  std::vector<std::vector<float>> parts;  // in the order of the file, matrices as [columns][depth]
};

class Writer {
 public:
  Writer(const std::string& path, const trawl::encoder::BertShape& shape, trawl::encoder::WeightType type)
      : file_(std::fopen(path.c_str(), "wb")), type_(type) {
    if (file_ == nullptr) throw std::runtime_error("cannot create " + path);
    uint8_t header[trawl::encoder::kHeaderBytes] = {};
    const int32_t version = trawl::encoder::kVersion;
    std::memcpy(header, type == trawl::encoder::WeightType::kInt8 ? trawl::encoder::kByteMagic : trawl::encoder::kMagic, 8);
    std::memcpy(header + 8, &version, 4);
    std::memcpy(header + 12, &shape, sizeof shape);
    write(header, sizeof header);
  }
  ~Writer() { std::fclose(file_); }
  void write(const void* data, size_t bytes) {
    static const char zeros[64] = {};
    std::fwrite(data, 1, bytes, file_);
    std::fwrite(zeros, 1, (64 - bytes % 64) % 64, file_);
  }
  void floats(const std::vector<float>& values) { write(values.data(), values.size() * 4); }
  void matrix(const std::vector<float>& values, int64_t depth, int64_t columns) {
    if (type_ == trawl::encoder::WeightType::kInt8) {
      const Codes codes = quantized(values, depth, columns);
      write(codes.packed.data(), codes.packed.size());
      write(codes.offset_corrections.data(), codes.offset_corrections.size() * 4);
      return floats(codes.scales);
    }
    const std::vector<uint16_t> bf16 = packed(values, depth, columns);
    write(bf16.data(), bf16.size() * 2);
  }

 private:
  std::FILE* file_;
  trawl::encoder::WeightType type_;
};

// Random weights of the scale of trained ones; writes them to `path` and returns them.
inline Weights write_random(const std::string& path, const trawl::encoder::BertShape& s, uint32_t seed,
                            trawl::encoder::WeightType type = trawl::encoder::WeightType::kBfloat16) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Weights weights{s, type, {}};
  Writer writer(path, s, type);
  const auto draw = [&](int64_t count, float scale, float around = 0) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = around + scale * normal(random);
    weights.parts.push_back(std::move(values));
  };
  const auto vector = [&](int64_t count, float scale, float around = 0) {
    draw(count, scale, around);
    writer.floats(weights.parts.back());
  };
  const auto norm = [&] {
    std::vector<float> both;
    for (int i = 0; i < 2 * s.hidden; ++i) both.push_back((i < s.hidden ? 1.0f : 0.0f) + 0.1f * normal(random));
    weights.parts.push_back(both);
    writer.floats(both);
  };
  const auto dense = [&](int64_t depth, int64_t columns) {
    draw(depth * columns, 1 / std::sqrt(static_cast<float>(depth)));
    writer.matrix(weights.parts.back(), depth, columns);
    vector(columns, 0.1f);
  };
  vector(int64_t{s.vocabulary} * s.hidden, 1);
  vector(int64_t{s.positions} * s.hidden, 0.3f);
  if (s.token_types > 0) vector(int64_t{s.token_types} * s.hidden, 0.3f);
  norm();
  for (int i = 0; i < s.layers; ++i) {
    dense(s.hidden, 3 * s.hidden);
    dense(s.hidden, s.hidden);
    norm();
    dense(s.hidden, s.intermediate);
    dense(s.intermediate, s.hidden);
    norm();
  }
  return weights;
}

constexpr int32_t kMany = 1 << 24, kWide = 1 << 16;

// The bytes of a file of that shape, by the description in bert_file.hpp; -1 if no import writes the shape.
inline double file_bytes(const trawl::encoder::BertShape& s, trawl::encoder::WeightType type) {
  const auto within = [](int32_t value, int32_t least, int32_t most) { return value >= least && value <= most; };
  if (!within(s.layers, 1, 4096) || !within(s.hidden, 16, kWide) || !within(s.intermediate, 16, kWide) || !within(s.heads, 1, s.hidden) ||
      !within(s.vocabulary, 1, kMany) || !within(s.positions, 1, kMany) || !within(s.token_types, 0, kMany) ||
      !within(s.activation, 0, 2) || !within(s.position_padding, -1, kMany) || !std::isfinite(s.epsilon) || s.epsilon < 0) {
    return -1;
  }
  if (s.hidden % 16 != 0 || s.intermediate % 16 != 0 || s.hidden % s.heads != 0 || s.hidden / s.heads % 16 != 0) return -1;
  const double h = s.hidden, i = s.intermediate;
  const auto part = [](double bytes) { return std::ceil(bytes / 64) * 64; };
  const auto dense = [&](double depth, double columns) {
    const double summands = part(4 * columns);
    return type == trawl::encoder::WeightType::kInt8 ? part(depth * columns) + 3 * summands : part(2 * depth * columns) + summands;
  };
  const double layer = dense(h, 3 * h) + dense(h, h) + dense(h, i) + dense(i, h) + 2 * part(8 * h);
  return 128 + part(4 * s.vocabulary * h) + part(4 * s.positions * h) + part(4 * s.token_types * h) + part(8 * h) + s.layers * layer;
}

// Runs texts of every length; the values of hidden may be anything.
inline void run_all_lengths(trawl::encoder::BertEncoder& encoder, std::mt19937& random) {
  const trawl::encoder::BertShape& s = encoder.shape();
  const int64_t longest = s.position_padding < 0 ? s.positions : s.positions - s.position_padding - 1;
  for (int64_t length = 1; length <= std::min<int64_t>(longest, 20); ++length) {
    std::vector<int32_t> ids(static_cast<size_t>(2 * length));
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(s.vocabulary));
    std::vector<float> hidden(ids.size() * static_cast<size_t>(s.hidden));
    encoder.run(ids.data(), nullptr, 2, length, hidden.data());
  }
}

}  // namespace bert_files
