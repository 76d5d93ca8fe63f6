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
  std::vector<int32_t> first_sums;
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
    result.first_sums.push_back(-trawl::encoder::kCodeOffset * sum);
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
      write(codes.first_sums.data(), codes.first_sums.size() * 4);
      return floats(codes.scales);
    }
    const std::vector<uint16_t> halves = packed(values, depth, columns);
    write(halves.data(), halves.size() * 2);
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

}  // namespace bert_files
