// The choice of products in int8 by the number of rows: the decision from given times, what is timed, and which instruction sets may be chosen.
#include <algorithm>
#include <map>

#include "byte_tables.hpp"
#include "check.hpp"
#include "encoder/byte_choice.hpp"
#include "encoder/product_check.hpp"
#include "trawl/error.hpp"

using namespace trawl::encoder;

namespace {

// milliseconds of few and of many by the number of rows
int64_t chosen(const std::map<int64_t, std::pair<double, double>>& times) {
  return byte_rows_from([&](bool is_large, int64_t rows) { return is_large ? times.at(rows).second : times.at(rows).first; });
}

bool has(const char* name) {
  for (const trawl::IsaStatus& one : list_products(WeightType::kInt8)) {
    if (one.name == name) return one.available;
  }
  return false;
}

}  // namespace

TEST("int8 choice: AMX multiplies from the number of rows on from which it is faster by more than the noise, VNNI fewer") {
  CHECK_EQUAL(chosen({{12, {4, 1}}, {32, {8, 2}}, {64, {16, 4}}, {128, {32, 8}}}), int64_t{12});
  CHECK_EQUAL(chosen({{12, {4, 5}}, {32, {8, 2}}, {64, {16, 4}}, {128, {32, 8}}}), int64_t{32});
  CHECK_EQUAL(chosen({{12, {4, 3.9}}, {32, {8, 7.9}}, {64, {16, 4}}, {128, {32, 8}}}), int64_t{64});
  CHECK_EQUAL(chosen({{12, {4, 4}}, {32, {8, 8}}, {64, {16, 16}}, {128, {32, 32}}}), trawl::kNever);
  // Slower with the most rows: never, whatever it is with fewer.
  CHECK_EQUAL(chosen({{12, {4, 1}}, {32, {8, 2}}, {64, {16, 4}}, {128, {32, 40}}}), trawl::kNever);
  // One number of rows at which it is slower divides.
  CHECK_EQUAL(chosen({{12, {4, 1}}, {32, {8, 9}}, {64, {16, 4}}, {128, {32, 8}}}), int64_t{64});
}

TEST("int8 choice: the number of rows decides, and the products of long texts give the name") {
  const ByteProducts &few = *kPortableByteProducts, many = few;
  const ByteChoice choice = {&few, &many, 32}, never = {&few, &many, trawl::kNever};
  CHECK(&choice.for_rows(31) == &few && &choice.for_rows(32) == &many && &choice.for_long_texts() == &many);
  CHECK(&never.for_rows(1 << 20) == &few && &never.for_long_texts() == &few);
}

TEST("int8 choice: what is timed multiplies every row by all columns") {
  static int64_t rows = 0, panels = 0, calls = 0;
  ByteProducts counting = *kPortableByteProducts;
  counting.to_bf16 = [](const ByteTask& t, int64_t first, int64_t last, uint16_t*) {
    rows += t.rows;
    panels += first == 0 ? last : 0;
    ++calls;
    if (t.depth != kTimedColumns || t.columns != kTimedColumns) rows = -1'000'000;
  };
  CHECK(product_seconds(counting, 12) >= 0);
  CHECK(calls > 1 && rows == 12 * calls && panels == kTimedColumns / kPanel * calls);
  rows = panels = calls = 0;
  time_products(counting, *kPortableByteProducts);
  CHECK(calls > 1 && rows > 0);
  for (const ByteProducts* products : tested_byte_products()) CHECK(product_seconds(*products, 12) > 0);
}

TEST("int8 choice: a name gives its instruction set for every number of rows, no name the fastest, and AMX says what it lacks") {
  CHECK_EQUAL(list_products(WeightType::kInt8)[0].name, std::string("amx"));
  for (const trawl::IsaStatus& isa : list_products(WeightType::kInt8)) {
    if (!isa.available) {
      CHECK(!isa.reason.empty());
      CHECK_REFUSED(choose_byte_products(isa.name), trawl::ErrorCode::kIsaUnavailable, isa.reason);
      continue;
    }
    const ByteChoice& choice = choose_byte_products(isa.name);
    CHECK(choice.small_batch->name == isa.name && choice.large_batch == choice.small_batch &&
          &choice.for_rows(1) == &choice.for_rows(1000));
  }
  CHECK_REFUSED(choose_byte_products("sse9"), trawl::ErrorCode::kIsaUnavailable, "unknown");
  const ByteChoice& fastest = choose_byte_products();
  CHECK(&fastest == &choose_byte_products());
  CHECK_EQUAL(std::string(fastest.large_batch->name), std::string(select_byte_products().name));
  CHECK(fastest.small_batch == fastest.large_batch ||
        (fastest.small_batch == kAvx512VnniByteProducts && fastest.large_batch == kAmxByteProducts));
}

TEST("int8 choice: beside AMX and AVX-512 VNNI, attention has the fastest products in bfloat16, beside others their own") {
  const Products& fastest = select_products();
  for (const ByteProducts* products : emulated_amx_products()) CHECK(&products_beside(*products) == &fastest);
  if (has("avx512-vnni")) CHECK(&products_beside(*kAvx512VnniByteProducts) == &fastest);
  if (has("avx2")) CHECK(&products_beside(*kAvx2ByteProducts) == kAvx2Products);
  CHECK(&products_beside(*kPortableByteProducts) == kPortableProducts);
}

TEST("int8 choice: an instruction that takes the codes of inputs as signed is found out") {
  for (const ByteProducts* products : tested_byte_products()) CHECK(sums_as_defined(*products));
  ByteProducts other = *kPortableByteProducts;
  other.to_float = [](const ByteTask& t, int64_t first, int64_t last, float* to) {
    kPortableByteProducts->to_float(t, first, last, to);
    for (int64_t row = 0; row < t.rows; ++row) {
      for (int64_t column = first * kPanel; column < std::min(t.columns, last * kPanel); ++column) {
        const int64_t start = column / kPanel * kPanel, width = std::min<int64_t>(kPanel, t.columns - start);
        for (int64_t k = 0; k < t.depth; ++k) {
          if (t.a[row * t.depth + k] < 128) continue;
          to[row * t.columns + column] -= 256.0f * t.packed[start * t.depth + k / 4 * width * 4 + (column - start) * 4 + k % 4];
        }
      }
    }
  };
  CHECK(!sums_as_defined(other));
}
