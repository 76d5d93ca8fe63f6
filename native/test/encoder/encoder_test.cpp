// Tests of the encoders in bfloat16 and int8: products in bfloat16 against their definition, the forward pass against one in float64, and
// equal bits. byte_products_test.cpp has the products in int8.
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "bert_files.hpp"
#include "byte_tables.hpp"
#include "check.hpp"
#include "encoder/byte_choice.hpp"
#include "encoder/product_check.hpp"
#include "encoder/thread_team.hpp"
#include "exact_pass.hpp"
#include "trawl/error.hpp"

using namespace trawl::encoder;
using bert_files::Weights;
using trawl::ErrorCode;

namespace {

std::vector<const Products*> available_products() {
  std::vector<const Products*> list;
  for (const trawl::IsaStatus& one : list_products()) {
    if (one.available) list.push_back(&select_products(one.name));
  }
  return list;
}

std::vector<std::string> available_names(WeightType type) {
  std::vector<std::string> names;
  for (const trawl::IsaStatus& one : list_products(type)) {
    if (one.available) names.push_back(one.name);
  }
  return names;
}

constexpr WeightType kTypes[] = {WeightType::kBfloat16, WeightType::kInt8};

struct TempFile {
  std::string path;
  explicit TempFile(const std::string& name) : path("/tmp/trawl-encoder-test-" + std::to_string(::getpid()) + "-" + name) {}
  ~TempFile() { ::unlink(path.c_str()); }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

BertShape shape_of(int32_t layers, int32_t hidden, int32_t heads, int32_t intermediate) {
  return {layers, hidden, heads, intermediate, 50, 40, 2, 0, -1, 1e-12f};
}

std::vector<int32_t> some_ids(int64_t count, uint32_t seed, int32_t below = 50) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(below));
  return ids;
}

std::vector<float> run(const std::string& path, const std::string& isa, const std::vector<int32_t>& ids, const int32_t* types,
                       int64_t texts) {
  BertEncoder encoder(path, isa);
  std::vector<float> hidden(ids.size() * static_cast<size_t>(encoder.shape().hidden));
  encoder.run(ids.data(), types, texts, static_cast<int64_t>(ids.size()) / texts, hidden.data());
  return hidden;
}

}  // namespace

TEST("encoder: a value is rounded to the nearest bfloat16, the even one of two, and to zero below 2^-50") {
  CHECK_EQUAL(to_bf16(1.0f), 0x3F80);
  CHECK_EQUAL(to_bf16(1.00390625f), 0x3F80);
  CHECK_EQUAL(to_bf16(1.01171875f), 0x3F82);
  CHECK_EQUAL(to_bf16(std::nextafter(1.00390625f, 2.0f)), 0x3F81);
  CHECK_EQUAL(to_bf16(-0x1p-50f), 0xA680);
  CHECK_EQUAL(to_bf16(0x1.fffffep-51f), 0);
  CHECK_EQUAL(to_bf16(-1e-40f), 0);
  const std::vector<float> values = {1.00390625f, 1.01171875f, -1.00390625f, 1.5f,     0x1p-51f, -0x1p-50f, 3.0078125f, 0,
                                     1e30f,       -7,          0.1f,         0x1p100f, 0x1p-60f, 1,         255.5f,     -0.7f};
  const std::vector<float> zeros(16, 0);
  for (const Products* products : available_products()) {
    std::vector<uint16_t> rounded(16);
    products->add_bias(values.data(), 16, zeros.data(), 1, 16, rounded.data(), 16);
    for (size_t i = 0; i < 16; ++i) CHECK_EQUAL(rounded[i], to_bf16(values[i]));
  }
}

TEST("encoder: shares of softmax are within half a bfloat16 digit of their values, and keys past the length have none") {
  const int64_t keys = 40, stride = 48;
  for (const Products* products : available_products()) {
    std::vector<float> scores(stride, 1e9f);
    for (int64_t k = 0; k < keys; ++k) scores[k] = -0.6f * static_cast<float>(k * 7 % keys);
    const std::vector<float> given = scores;
    std::vector<uint16_t> shares(stride);
    float sum = 0;
    products->softmax(scores.data(), 1, keys, stride, 0.9f, shares.data(), &sum);
    double total = 0;
    for (int64_t k = 0; k < stride; ++k) {
      const double share = from_bf16(shares[k]), exact = k < keys ? std::exp(0.9 * given[k]) : 0;
      total += share;
      CHECK(std::abs(share - exact) <= exact * (0x1p-8 + 1e-6));
    }
    CHECK(std::abs(sum - total) < 1e-5 * total);
  }
}

TEST("encoder: every instruction set sums products in the order that products.hpp defines, for all numbers of rows and columns") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const int64_t depth : {2, 6, 64}) {
    for (const int64_t columns : {16, 32, 48, 64, 80, 144}) {
      std::vector<float> matrix(static_cast<size_t>(depth * columns));
      for (float& v : matrix) v = std::ldexp(normal(random), static_cast<int>(random() % 40) - 20);
      const std::vector<uint16_t> packed = bert_files::packed(matrix, depth, columns);
      std::vector<float> halves;
      for (const float v : matrix) halves.push_back(from_bf16(to_bf16(v)));
      for (int64_t rows = 1; rows <= 14; ++rows) {
        std::vector<uint16_t> a(static_cast<size_t>(rows * depth));
        for (uint16_t& v : a) v = to_bf16(normal(random));
        std::vector<float> expected(static_cast<size_t>(rows * columns));
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            // Volatile, because GCC 12 vectorises this chain in another order.
            volatile float sum = 0;
            for (int64_t k = 0; k < depth; k += 2) {
              const float* column = halves.data() + c * depth;
              const uint16_t* row = a.data() + r * depth;
              sum = sum + from_bf16(row[k + 1]) * column[k + 1];
              sum = sum + from_bf16(row[k]) * column[k];
            }
            expected[r * columns + c] = sum;
          }
        }
        for (const Products* products : available_products()) {
          std::vector<float> sums(expected.size(), NAN);
          products->multiply({a.data(), depth, packed.data(), depth, columns, rows, sums.data(), columns}, 0, (columns + 63) / 64);
          if (!same_bits(sums, expected)) {
            size_t at = 0;
            while (std::memcmp(&sums[at], &expected[at], 4) == 0) ++at;
            char text[200];
            std::snprintf(text, sizeof text, "%s: sum %zu of %d x %d, depth %d is %a, expected %a", products->name, at,
                          static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(depth), sums[at], expected[at]);
            check::fail(__FILE__, __LINE__, text);
          }
        }
      }
    }
  }
}

// The portable products with the two values of each pair exchanged: the other order of the same sum.
void multiply_exchanged(const ProductTask& t, int64_t first, int64_t last) {
  const auto exchanged = [](const uint16_t* values, int64_t count) {
    std::vector<uint16_t> copy(values, values + count);
    for (size_t i = 0; i < copy.size(); i += 2) std::swap(copy[i], copy[i + 1]);
    return copy;
  };
  ProductTask other = t;
  const std::vector<uint16_t> a = exchanged(t.a, t.rows * t.a_stride), packed = exchanged(t.packed, t.depth * t.columns);
  other.a = a.data();
  other.packed = packed.data();
  kPortableProducts->multiply(other, first, last);
}

// Both products of a pair in one sum, rounded once.
void multiply_unrounded(const ProductTask& t, int64_t first, int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    const int64_t width = std::min<int64_t>(kPanel, t.columns - p * kPanel);
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        float sum = 0;
        for (int64_t k = 0; k < t.depth; k += 2) {
          const uint16_t *row = t.a + r * t.a_stride + k, *pair = t.packed + p * kPanel * t.depth + k * width + 2 * c;
          const double both =
              static_cast<double>(from_bf16(row[0])) * from_bf16(pair[0]) + static_cast<double>(from_bf16(row[1])) * from_bf16(pair[1]);
          sum = static_cast<float>(sum + both);
        }
        t.sums[r * t.sums_stride + p * kPanel + c] = sum;
      }
    }
  }
}

// AMX's tdpbf16ps as Intel's manual defines it: the sums of the even and of the odd values of 32, each by fused multiply-adds from
// zero, are added to one another and then to the sum. All with subnormals taken for zero, of which there are none.
void multiply_in_tiles(const ProductTask& t, int64_t first, int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    const int64_t width = std::min<int64_t>(kPanel, t.columns - p * kPanel);
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        volatile float sum = 0;
        for (int64_t from = 0; from < t.depth; from += 32) {
          float even = 0, odd = 0;
          for (int64_t k = from; k < std::min(from + 32, t.depth); k += 2) {
            const uint16_t *row = t.a + r * t.a_stride + k, *pair = t.packed + p * kPanel * t.depth + k * width + 2 * c;
            even = std::fma(from_bf16(row[0]), from_bf16(pair[0]), even);
            odd = std::fma(from_bf16(row[1]), from_bf16(pair[1]), odd);
          }
          sum = sum + (even + odd);
        }
        t.sums[r * t.sums_stride + p * kPanel + c] = sum;
      }
    }
  }
}

TEST("encoder: an instruction that sums in another order, as AMX does, or rounds once for two products, is found out") {
  for (const Products* products : available_products()) CHECK(sums_as_defined(*products));
  Products other = *kPortableProducts;
  other.multiply = multiply_exchanged;
  CHECK(!sums_as_defined(other));
  other.multiply = multiply_in_tiles;
  CHECK(!sums_as_defined(other));
  other.multiply = multiply_unrounded;
  CHECK(!sums_as_defined(other));
}

TEST("encoder: the forward pass agrees with one in float64, for every activation, kind of positions and number of token types") {
  BertShape shapes[] = {shape_of(2, 64, 4, 128), shape_of(3, 96, 2, 80), shape_of(1, 128, 1, 256), shape_of(2, 64, 2, 64)};
  shapes[0].token_types = 5;
  shapes[1].activation = 1;
  shapes[2].activation = 2;
  shapes[2].token_types = 0;
  shapes[2].epsilon = 0.5f;
  shapes[3].position_padding = 1;
  shapes[3].token_types = 1;
  const TempFile file("pass");
  for (const WeightType type : kTypes) {
    // What the inputs lose in int8.
    const double least = type == WeightType::kInt8 ? 0.999 : 0.9998;
    for (const BertShape& shape : shapes) {
      const Weights weights = bert_files::write_random(file.path, shape, 3, type);
      for (const int64_t length : {1, 2, 15, 16, 17, 33}) {
        const std::vector<int32_t> ids = some_ids(length, static_cast<uint32_t>(length)),
                                   types = some_ids(length, 9, std::max(1, shape.token_types));
        const double cosine =
            exact_pass::smallest_cosine(run(file.path, "", ids, types.data(), 1), exact_pass::hidden_of(weights, ids, types), shape.hidden);
        if (!(cosine > least)) check::fail(__FILE__, __LINE__, "cosine " + std::to_string(cosine) + " at length " + std::to_string(length));
      }
    }
  }
}

TEST("encoder: a text has the same bits alone and with others, and with every instruction set") {
  const BertShape shape = shape_of(2, 192, 4, 320);
  const TempFile file("bits");
  const int64_t texts = 5;
  for (const WeightType type : kTypes) {
    bert_files::write_random(file.path, shape, 11, type);
    for (const int64_t length : {1, 3, 7, 12, 31, 40}) {
      const std::vector<int32_t> ids = some_ids(texts * length, 21);
      const std::vector<float> together = run(file.path, "", ids, nullptr, texts);
      for (const std::string& isa : available_names(type)) {
        CHECK(same_bits(run(file.path, isa, ids, nullptr, texts), together));
        for (int64_t text = 0; text < texts; ++text) {
          const std::vector<int32_t> own(ids.begin() + text * length, ids.begin() + (text + 1) * length);
          const std::vector<float> alone = run(file.path, isa, own, nullptr, 1);
          CHECK(std::memcmp(alone.data(), together.data() + text * length * shape.hidden, alone.size() * 4) == 0);
        }
      }
    }
  }
}

TEST("encoder: a pass in int8 has the same bits with emulated AMX, and with products that change with the number of tokens") {
  const TempFile file("amx");
  for (const BertShape& shape : {shape_of(2, 192, 4, 320), shape_of(1, 80, 5, 96), shape_of(2, 64, 2, 16)}) {
    bert_files::write_random(file.path, shape, 13, WeightType::kInt8);
    for (const int64_t length : {1, 2, 12, 16, 17, 33, 40}) {
      const int64_t texts = 1 + length % 3;
      const std::vector<int32_t> ids = some_ids(texts * length, static_cast<uint32_t>(length));
      const std::vector<float> expected = run(file.path, "portable", ids, nullptr, texts);
      for (const ByteProducts* amx : emulated_amx_products()) {
        for (const ByteChoice& choice : {ByteChoice{amx, amx, 0}, ByteChoice{kPortableByteProducts, amx, 17}}) {
          BertEncoder encoder(file.path, choice);
          CHECK_EQUAL(std::string(encoder.isa()), std::string("amx"));
          for (const int64_t threads : {1, 3}) {
            std::vector<float> hidden(expected.size(), NAN);
            encoder.run(ids.data(), nullptr, texts, length, hidden.data(), threads);
            CHECK(same_bits(hidden, expected));
          }
        }
      }
    }
  }
  bert_files::write_random(file.path, shape_of(1, 64, 2, 64), 5);
  CHECK_REFUSED(BertEncoder(file.path, choose_byte_products()), ErrorCode::kBadArgument, "are not int8");
}

TEST("encoder: a text divided among 2 to 8 threads has the bits of one, in concurrent passes of several encoders too") {
  const TempFile file("divided");
  std::atomic<int> wrong{0};
  const auto compare = [&](uint32_t seed) {
    BertEncoder encoder(file.path);
    const int64_t hidden = encoder.shape().hidden;
    std::mt19937 random(seed);
    for (int round = 0; round < (check::small() ? 15 : 50); ++round) {
      const int64_t texts = 1 + random() % 2, length = 1 + static_cast<int64_t>(random() % 40);
      const std::vector<int32_t> ids = some_ids(texts * length, random());
      std::vector<float> one(ids.size() * hidden, NAN), many(ids.size() * hidden, NAN);
      encoder.run(ids.data(), nullptr, texts, length, one.data());
      encoder.run(ids.data(), nullptr, texts, length, many.data(), 2 + random() % 7);
      if (!same_bits(one, many)) ++wrong;
    }
  };
  // Heads of 48 values, whose query, key and value are not whole panels; of 32 and of 64, where they are for 2 and for 4 threads.
  for (const BertShape& shape : {shape_of(2, 192, 4, 320), shape_of(2, 128, 4, 320), shape_of(1, 256, 4, 256)}) {
    for (const WeightType type : kTypes) {
      bert_files::write_random(file.path, shape, 11, type);
      std::vector<std::thread> callers;
      for (uint32_t caller = 0; caller < 3; ++caller) callers.emplace_back(compare, caller);
      for (std::thread& each : callers) each.join();
    }
  }
  CHECK_EQUAL(wrong.load(), 0);
}

TEST("encoder: every width of heads and layers has the same bits divided among 1 to 8 threads, after longer and shorter passes") {
  const TempFile file("widths");
  // Heads of 16, 32, 48, 64, 80 and 128 values; layers narrower than a panel, with a rest, and with more and fewer panels than threads;
  // inner layers wider and narrower than the outer ones.
  const BertShape shapes[] = {shape_of(2, 16, 1, 16),  shape_of(2, 32, 2, 144),  shape_of(1, 48, 1, 16),  shape_of(2, 64, 4, 32),
                              shape_of(1, 80, 5, 208), shape_of(1, 80, 1, 64),   shape_of(2, 128, 8, 48), shape_of(1, 128, 1, 192),
                              shape_of(2, 192, 4, 80), shape_of(1, 256, 2, 128), shape_of(2, 192, 3, 64), shape_of(1, 384, 12, 80)};
  const std::pair<int64_t, int64_t> passes[] = {{1, 40}, {3, 1}, {1, 1}, {2, 17}, {5, 40}, {1, 12}, {1, 33}};
  for (const WeightType type : kTypes) {
    for (const BertShape& shape : shapes) {
      bert_files::write_random(file.path, shape, 17, type);
      BertEncoder kept(file.path);
      uint32_t seed = 0;
      for (const auto& [texts, length] : passes) {
        const std::vector<int32_t> ids = some_ids(texts * length, ++seed);
        const std::vector<float> expected = run(file.path, "portable", ids, nullptr, texts);
        for (const int64_t threads : {1, 2, 3, 4, 6, 8}) {
          std::vector<float> hidden(expected.size(), NAN);
          kept.run(ids.data(), nullptr, texts, length, hidden.data(), threads);
          if (!same_bits(hidden, expected)) {
            check::fail(__FILE__, __LINE__,
                        "layers of " + std::to_string(shape.hidden) + ", " + std::to_string(shape.heads) + " heads: " +
                            std::to_string(texts) + " x " + std::to_string(length) + " tokens on " + std::to_string(threads) + " threads");
          }
        }
      }
    }
  }
}

TEST("encoder: a divided pass is not disturbed by an error in the one before, nor by more threads than it may have") {
  const TempFile file("after-error");
  bert_files::write_random(file.path, shape_of(1, 64, 2, 64), 5);
  BertEncoder encoder(file.path);
  std::vector<int32_t> ids = some_ids(9, 2);
  const std::vector<float> expected = run(file.path, "", ids, nullptr, 1);
  std::vector<float> hidden(expected.size());
  ids[8] = 50;
  CHECK_REFUSED(encoder.run(ids.data(), nullptr, 1, 9, hidden.data(), 3), ErrorCode::kBadArgument, "token id 50");
  ids = some_ids(9, 2);
  for (const int64_t threads : {3, 1000, 0, 1}) {
    std::fill(hidden.begin(), hidden.end(), NAN);
    encoder.run(ids.data(), nullptr, 1, 9, hidden.data(), threads);
    CHECK(same_bits(hidden, expected));
  }
}

TEST("encoder: the threads of a team take each item once, several of them take part, and one that is left over takes none") {
  ThreadTeam team;
  std::set<int64_t> seen;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (seen.size() < 3 && std::chrono::steady_clock::now() < until) {
    team.begin(3);
    CHECK_EQUAL(team.members(), 3);
    std::vector<std::atomic<int>> taken(40);
    std::vector<std::atomic<int>> by(3);
    team.divide(40, [&](int64_t item, int64_t member) {
      ++taken[item];
      ++by[member];
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
    for (const auto& count : taken) CHECK_EQUAL(count.load(), 1);
    for (int64_t member = 0; member < 3; ++member) {
      if (by[member] > 0) seen.insert(member);
    }
    team.end();
    // Those of the pass before may not have seen its end yet.
    team.begin(2);
    std::atomic<int64_t> largest{0};
    for (int step = 0; step < 50; ++step) {
      team.divide(8, [&](int64_t, int64_t member) {
        if (member > largest) largest = member;
      });
    }
    CHECK(largest < 2);
    team.end();
    CHECK_EQUAL(team.members(), 1);
  }
  CHECK_EQUAL(seen.size(), 3u);
}

TEST("encoder: flush-to-zero of the calling thread changes no bit, and is kept") {
#if defined(__x86_64__)
  const TempFile file("flush");
  bert_files::write_random(file.path, shape_of(1, 64, 2, 64), 5);
  const std::vector<int32_t> ids = some_ids(9, 2);
  const std::vector<float> expected = run(file.path, "", ids, nullptr, 1);
  const uint32_t before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  const std::vector<float> flushed = run(file.path, "", ids, nullptr, 1);
  const uint32_t after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(same_bits(flushed, expected));
  CHECK_EQUAL(after & 0x8040u, 0x8040u);
#endif
}

TEST("encoder: ids, types, lengths, instruction sets and files that do not fit are refused") {
  const TempFile file("refused"), damaged("damaged");
  bert_files::write_random(file.path, shape_of(1, 64, 2, 64), 5);
  BertEncoder encoder(file.path);
  std::vector<float> hidden(41 * 64);
  std::vector<int32_t> ids(41, 3), wrong_types(3, 2);
  CHECK_REFUSED(encoder.run(ids.data(), nullptr, 1, 41, hidden.data()), ErrorCode::kBadArgument, "of 1 to 40 tokens");
  CHECK_REFUSED(encoder.run(ids.data(), nullptr, 1, 0, hidden.data()), ErrorCode::kBadArgument, "0 tokens");
  CHECK_REFUSED(encoder.run(ids.data(), wrong_types.data(), 1, 3, hidden.data()), ErrorCode::kBadArgument, "token type 2; expected 0 to 1");
  ids[1] = 50;
  CHECK_REFUSED(encoder.run(ids.data(), nullptr, 1, 3, hidden.data()), ErrorCode::kBadArgument, "token id 50; expected 0 to 49");
  ids[1] = -1;
  CHECK_REFUSED(encoder.run(ids.data(), nullptr, 1, 3, hidden.data()), ErrorCode::kBadArgument, "token id -1");
  CHECK_REFUSED(select_products("sse9"), ErrorCode::kIsaUnavailable, "unknown");
  CHECK_REFUSED(BertEncoder("/nonexistent/weights"), ErrorCode::kReadFailed, "/nonexistent/weights");
  std::ifstream source(file.path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(source)), {});
  const auto opened = [&](const std::string& content) {
    std::ofstream(damaged.path, std::ios::binary) << content;
    BertEncoder other(damaged.path);
  };
  const auto changed = [&](size_t at, int32_t value) {
    std::string copy = bytes;
    std::memcpy(&copy[at], &value, 4);
    return copy;
  };
  CHECK_REFUSED(opened(""), ErrorCode::kBadFile, "no weights of an encoder");
  CHECK_REFUSED(opened("TRAWLBRT"), ErrorCode::kBadFile, "no weights of an encoder");
  CHECK_REFUSED(opened(bytes.substr(0, bytes.size() - 64)), ErrorCode::kBadFile, "is truncated");
  CHECK_REFUSED(opened(bytes + std::string(64, '\0')), ErrorCode::kBadFile, "its header implies");
  CHECK_REFUSED(opened(changed(8, 2)), ErrorCode::kBadFile, "version 2, expected 1");
  for (const size_t field : {12, 16, 20, 24, 28, 32, 36, 40, 44}) {
    CHECK_REFUSED(opened(changed(field, -7)), ErrorCode::kBadFile, "a header that no import writes");
  }
  CHECK_REFUSED(opened(changed(16, 1 << 16)), ErrorCode::kBadFile, "truncated");
}
