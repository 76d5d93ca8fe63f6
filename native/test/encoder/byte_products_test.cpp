// Tests of the products in int8 and of the steps beside them: exact sums, the same bits with every instruction set, and small errors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "bert_files.hpp"
#include "byte_tables.hpp"
#include "check.hpp"
#include "encoder/byte_products.hpp"

using namespace trawl::encoder;

namespace {

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::vector<float> normal_values(int64_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = scale * normal(random);
  return values;
}

// A product of random codes, some of the largest magnitude, and its values by their definition.
struct Case {
  int64_t depth, columns, rows;
  std::vector<int8_t> inputs, packed, weights;
  std::vector<uint8_t> codes;
  std::vector<int32_t> offset_corrections;
  std::vector<float> row_scales, column_scales, bias, expected;

  Case(int64_t depth, int64_t columns, int64_t rows, uint32_t seed)
      : depth(depth), columns(columns), rows(rows), packed(static_cast<size_t>(depth * columns)) {
    std::mt19937 random(seed);
    const auto code = [&]() -> int8_t {
      return random() % 4 == 0 ? (random() % 2 == 0 ? 127 : -127) : static_cast<int8_t>(random() % 255 - 127);
    };
    for (int64_t i = 0; i < rows * depth; ++i) inputs.push_back(code());
    for (int64_t i = 0; i < columns * depth; ++i) weights.push_back(code());
    if (seed % 2 == 0) std::fill(inputs.begin(), inputs.begin() + depth, static_cast<int8_t>(127));
    if (seed % 2 == 0) std::fill(weights.begin(), weights.begin() + depth, static_cast<int8_t>(127));
    for (const int8_t value : inputs) codes.push_back(static_cast<uint8_t>(value + kCodeOffset));
    row_scales = normal_values(rows, seed + 1, 0.01f);
    column_scales = normal_values(columns, seed + 2, 0.01f);
    bias = normal_values(columns, seed + 3);
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t first = c / 64 * 64, width = std::min<int64_t>(64, columns - first);
      int32_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        packed[first * depth + k / 4 * width * 4 + (c - first) * 4 + k % 4] = weights[c * depth + k];
        sum += weights[c * depth + k];
      }
      offset_corrections.push_back(-kCodeOffset * sum);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += int32_t{inputs[r * depth + k]} * weights[c * depth + k];
        expected.push_back(static_cast<float>(sum) * row_scales[r] * column_scales[c] + bias[c]);
      }
    }
  }
  // With seed even the first column has the largest codes, as the first row has.
  void negate_first_column() {
    const int64_t width = std::min<int64_t>(64, columns);
    for (int64_t k = 0; k < depth; ++k) packed[k / 4 * width * 4 + k % 4] = static_cast<int8_t>(-packed[k / 4 * width * 4 + k % 4]);
    offset_corrections[0] = -offset_corrections[0];
    for (int64_t r = 0; r < rows; ++r) {
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum -= int32_t{inputs[r * depth + k]} * weights[k];
      expected[r * columns] = static_cast<float>(sum) * row_scales[r] * column_scales[0] + bias[0];
    }
  }
  ByteTask task() const {
    return {codes.data(), row_scales.data(), packed.data(), offset_corrections.data(), column_scales.data(), bias.data(),
            depth,        columns,           rows};
  }
};

std::vector<uint16_t> bf16_of(const std::vector<float>& values) {
  std::vector<uint16_t> bf16;
  for (const float value : values) bf16.push_back(to_bf16(value));
  return bf16;
}

int64_t panels(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

}  // namespace

TEST("int8 encoder: every instruction set gives the values of products as defined, for all numbers of rows and columns") {
  uint32_t seed = 0;
  for (const int64_t depth : {4, 16, 64}) {
    for (const int64_t columns : {16, 32, 48, 64, 80, 144}) {
      for (int64_t rows = 1; rows <= 14; ++rows) {
        const Case one(depth, columns, rows, ++seed);
        const std::vector<uint16_t> bf16_expected = bf16_of(one.expected);
        for (const ByteProducts* products : tested_byte_products()) {
          std::vector<float> values(one.expected.size(), NAN);
          products->to_float(one.task(), 0, panels(columns), values.data());
          CHECK(same_bits(values, one.expected));
          std::vector<uint16_t> bf16(one.expected.size(), 0xFFFF);
          products->to_bf16(one.task(), 0, panels(columns), bf16.data());
          CHECK(same_bits(bf16, bf16_expected));
        }
      }
    }
  }
}

// All panels at once and each alone. Nothing is written beside them.
template <typename To>
void check_values(const Case& one, const std::vector<To>& expected, void (*multiply)(const ByteTask&, int64_t, int64_t, To*), To unset) {
  constexpr int64_t kBeside = 64;
  const int64_t all = panels(one.columns), count = one.rows * one.columns;
  std::vector<To> values(static_cast<size_t>(count + 2 * kBeside));
  const auto check = [&](int64_t first, int64_t last) {
    std::fill(values.begin(), values.end(), unset);
    multiply(one.task(), first, last, values.data() + kBeside);
    int64_t wrong = 0;
    for (int64_t i = -kBeside; i < count + kBeside; ++i) {
      const int64_t panel = i % one.columns / kPanel;
      const bool is_set = i >= 0 && i < count && panel >= first && panel < last;
      if (values[kBeside + i] != (is_set ? expected[i] : unset)) ++wrong;
    }
    CHECK_EQUAL(wrong, 0);
  };
  check(0, all);
  for (int64_t panel = 0; all > 1 && panel < all; ++panel) check(panel, panel + 1);
}

TEST("int8 encoder: 1 to 40 rows of every width and of depths around whole tiles, with all panels at once and with each alone") {
  uint32_t seed = 100;
  const std::vector<int64_t> depths = check::small() ? std::vector<int64_t>{60, 68} : std::vector<int64_t>{4, 60, 64, 68, 128, 252, 1024};
  for (const int64_t depth : depths) {
    // Fewer of what takes long.
    for (int64_t columns = 16; columns <= 192; columns += depth > 128 ? 48 : 16) {
      for (int64_t rows = 1; rows <= 40; rows += depth == 64 || depth == 68 ? 1 : 3) {
        const Case one(depth, columns, rows, ++seed);
        const std::vector<uint16_t> bf16 = bf16_of(one.expected);
        for (const ByteProducts* products : tested_byte_products()) {
          check_values<float>(one, one.expected, products->to_float, -1e30f);
          check_values<uint16_t>(one, bf16, products->to_bf16, 0xFFFF);
        }
      }
    }
  }
}

TEST("int8 encoder: the longest sums of the largest codes are exact, with either sign and any number of rows of a tile") {
  for (const int64_t depth : {65536, 65536 - 4}) {
    for (const int64_t rows : {2, 17}) {
      Case one(depth, 16, rows, 2);
      for (const int sign : {1, -1}) {
        if (sign < 0) one.negate_first_column();
        for (const ByteProducts* products : tested_byte_products()) {
          std::vector<float> values(one.expected.size(), NAN);
          products->to_float(one.task(), 0, 1, values.data());
          CHECK(same_bits(values, one.expected));
        }
      }
    }
  }
}

TEST("int8 encoder: codes of a row are the nearest, the even one of two, and its scale is its largest magnitude / 127") {
  std::vector<float> values(48);
  const float given[] = {127, -127, 0.5f, 1.5f, -0.5f, -2.5f, 126.5f, 3, 0, -0.0f, 62.5f};
  std::copy(std::begin(given), std::end(given), values.begin() + 20);
  const int codes[] = {127, -127, 0, 2, 0, -2, 126, 3, 0, 0, 62};
  for (const float factor : {1.0f, 0x1p-40f, 0x1p90f}) {
    std::vector<float> scaled = values;
    for (float& value : scaled) value *= factor;
    for (const ByteProducts* products : tested_byte_products()) {
      std::vector<uint8_t> found(48);
      float scale = NAN;
      products->quantize(bf16_of(scaled).data(), 1, 48, found.data(), &scale);
      CHECK_EQUAL(scale, factor);
      for (int i = 0; i < 11; ++i) CHECK_EQUAL(found[20 + i] - kCodeOffset, codes[i]);
      for (int i = 0; i < 20; ++i) CHECK_EQUAL(found[i], kCodeOffset);
    }
  }
}

TEST("int8 encoder: a row without digits has the scale 0, and other rows keep theirs") {
  std::vector<float> values(3 * 16, 0);
  values[32 + 5] = -254;
  std::vector<uint16_t> bf16 = bf16_of(values);
  bf16[16 + 3] = 0x006D;  // 1e-38, whose reciprocal float32 cannot hold
  for (const ByteProducts* products : tested_byte_products()) {
    std::vector<uint8_t> codes(48);
    std::vector<float> scales(3, NAN);
    products->quantize(bf16.data(), 3, 16, codes.data(), scales.data());
    CHECK(same_bits(scales, {0.0f, 0.0f, 2.0f}));
    for (int i = 0; i < 48; ++i) CHECK_EQUAL(codes[i], i == 37 ? 1 : kCodeOffset);
  }
}

TEST("int8 encoder: every step has the same bits with every instruction set") {
  const int64_t rows = 37, columns = 80;
  const std::vector<float> values = normal_values(rows * columns, 1, 3), weight = normal_values(columns, 2),
                           shift = normal_values(columns, 3);
  const std::vector<uint16_t> bf16 = bf16_of(values);
  const Case one(64, columns, rows, 9);
  const auto all_bits = [&](const ByteProducts& products) {
    std::vector<uint8_t> bits;
    const auto add = [&](const auto& part) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(part.data());
      bits.insert(bits.end(), bytes, bytes + part.size() * sizeof part[0]);
    };
    std::vector<uint8_t> codes(values.size());
    std::vector<float> scales(rows), hidden = normal_values(rows * columns, 4);
    products.quantize(bf16.data(), rows, columns, codes.data(), scales.data());
    add(codes), add(scales);
    for (const float* added : {values.data(), static_cast<const float*>(nullptr)}) {
      products.normalize(added, weight.data(), shift.data(), 1e-12f, rows, columns, hidden.data(), codes.data(), scales.data());
      add(codes), add(scales), add(hidden);
    }
    for (const int activation : {0, 1, 2}) {
      std::vector<uint16_t> inner(values.size());
      products.to_activation(one.task(), activation, 0, panels(columns), inner.data());
      add(inner);
    }
    for (const int64_t keys : {65, 66, 79, 80}) {
      std::vector<uint16_t> shares(values.size());
      std::vector<float> sums(rows);
      products.softmax(values.data(), rows, keys, columns, 0.7f, shares.data(), sums.data());
      add(shares), add(sums);
    }
    return bits;
  };
  const std::vector<uint8_t> expected = all_bits(*kPortableByteProducts);
  for (const ByteProducts* products : tested_byte_products()) CHECK(same_bits(all_bits(*products), expected));
}

TEST("int8 encoder: activations are within 2e-4, or 1e-4 of a large input, and half a bfloat16 digit of their values") {
  // A product whose sum is zero and whose bias is the input.
  const int64_t columns = 16'000;
  std::vector<float> inputs;
  for (int64_t i = 0; i < columns; ++i) inputs.push_back(static_cast<float>(i - columns / 2) * 12 / columns);
  inputs[0] = -1e4f;
  inputs[1] = 1e4f;
  const std::vector<int8_t> packed(static_cast<size_t>(columns * 4), 1);
  const std::vector<int32_t> offset_corrections(static_cast<size_t>(columns), -4 * kCodeOffset);
  const std::vector<float> scales(static_cast<size_t>(columns), 1);
  const std::vector<uint8_t> codes(4, kCodeOffset);
  const ByteTask task{codes.data(), scales.data(), packed.data(), offset_corrections.data(), scales.data(), inputs.data(), 4, columns, 1};
  for (const int activation : {0, 1, 2}) {
    std::vector<uint16_t> values(inputs.size());
    select_byte_products().to_activation(task, activation, 0, panels(columns), values.data());
    double largest = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double x = inputs[i];
      const double exact = activation == 0   ? x / 2 * std::erfc(-x / std::sqrt(2.0))
                           : activation == 1 ? x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
                                             : std::max(x, 0.0);
      largest = std::max(largest, (std::abs(from_bf16(values[i]) - exact) - std::abs(exact) * 0x1p-8) / std::max(1.0, std::abs(x) / 2));
    }
    if (!(largest < 2e-4)) check::fail(__FILE__, __LINE__, "activation " + std::to_string(activation) + ": " + std::to_string(largest));
  }
}

TEST("int8 encoder: shares of softmax are within half a bfloat16 digit of their values, and keys past the length have none") {
  const int64_t rows = 5, stride = 48;
  std::vector<float> scores = normal_values(rows * stride, 5, 8);
  for (const int64_t keys : {33, 40, 48}) {
    std::vector<uint16_t> shares(scores.size());
    std::vector<float> sums(rows);
    for (int64_t r = 0; r < rows; ++r) std::fill(scores.begin() + r * stride + keys, scores.begin() + (r + 1) * stride, 1e9f);
    select_byte_products().softmax(scores.data(), rows, keys, stride, 0.5f, shares.data(), sums.data());
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = scores.data() + r * stride;
      const double top = *std::max_element(row, row + keys);
      double total = 0;
      for (int64_t k = 0; k < stride; ++k) {
        const double share = from_bf16(shares[r * stride + k]);
        total += share;
        if (k >= keys) CHECK_EQUAL(share, 0);
        const double exact = k < keys ? std::exp((row[k] - top) / 2) : 0;
        CHECK(std::abs(share - exact) <= exact * (0x1p-8 + 1e-4) + 1e-14);
      }
      CHECK(std::abs(sums[r] - total) < 1e-5 * total);
    }
    scores = normal_values(rows * stride, 6, 8);
  }
}
