// Which products in int8 an encoder uses, by the number of rows: with few rows, AMX's tiles are mostly empty or wait for the weights, and
// AVX-512 VNNI may be faster.
#pragma once
#include <array>
#include <string>

#include "base/faster_from.hpp"
#include "encoder/byte_products.hpp"

namespace trawl::encoder {

struct ByteChoice {
  const ByteProducts* small_batch;
  const ByteProducts* large_batch;  // of `large_from` rows or more
  int64_t large_from;

  const ByteProducts& for_rows(int64_t rows) const { return rows < large_from ? *small_batch : *large_batch; }
  // For passes over long texts.
  const ByteProducts& for_long_texts() const { return large_from == kNever ? *small_batch : *large_batch; }
};

// The products with that name for every number of rows. For an empty name the fastest for each; if the machine has AMX, the first call
// times it against AVX-512 VNNI, a few ms. Throws kIsaUnavailable.
const ByteChoice& choose_byte_products(const std::string& name = "");

// What is timed: products of one thread with kTimedColumns x kTimedColumns weights for each of these numbers of rows, from a query to a
// passage.
constexpr std::array<int64_t, 4> kTimedByteRows = {12, 32, 64, 128};
constexpr int64_t kTimedColumns = 768;

// From how many rows on the products for large batches are faster by more than the noise. seconds_of(is large, rows).
template <typename SecondsOf>
int64_t byte_rows_from(const SecondsOf& seconds_of) {
  return faster_from(kTimedByteRows, seconds_of, kNever);
}
double product_seconds(const ByteProducts& products, int64_t rows);
// Times both, a few ms.
ByteChoice time_products(const ByteProducts& small_batch, const ByteProducts& large_batch);

}  // namespace trawl::encoder
