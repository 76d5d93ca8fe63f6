// Which products in int8 an encoder uses, by the number of rows: with few rows, AMX's tiles are mostly empty or wait for the weights, and
// AVX-512 VNNI may be faster.
#pragma once
#include <array>
#include <string>

#include "encoder/byte_products.hpp"
#include "base/faster_from.hpp"

namespace trawl::encoder {

struct ByteChoice {
  const ByteProducts* few;
  const ByteProducts* many;  // from that number of rows on
  int64_t many_from;

  const ByteProducts& of(int64_t rows) const { return rows < many_from ? *few : *many; }
  // The one that passes over long texts use.
  const ByteProducts& main() const { return many_from == kNever ? *few : *many; }
};

// The products with that name for every number of rows. For an empty name the fastest for each; if the machine has AMX, the first call
// times it against AVX-512 VNNI, a few ms. Throws kIsaUnavailable.
const ByteChoice& choose_byte_products(const std::string& name = "");

// What is timed: products of one thread with kTimedColumns x kTimedColumns weights for each of these numbers of rows, from a query to a
// passage.
constexpr std::array<int64_t, 4> kTimedByteRows = {12, 32, 64, 128};
constexpr int64_t kTimedColumns = 768;

// From how many rows on `many` is faster by more than the noise. seconds_of(many or few, rows).
template <typename SecondsOf>
int64_t byte_rows_from(const SecondsOf& seconds_of) {
  return faster_from(kTimedByteRows, seconds_of, kNever);
}
double product_seconds(const ByteProducts& products, int64_t rows);
// Times both, a few ms.
ByteChoice time_products(const ByteProducts& few, const ByteProducts& many);

}  // namespace trawl::encoder
