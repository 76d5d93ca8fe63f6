// The rows that a search may return: those in both the index's bitmap of live rows and the request's bitmap. Reads combine the
// two word by word, so no search copies a bitmap.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/row_bits.hpp"

namespace trawl {

class RowFilter {
 public:
  // Bit (row & 63) of word (row >> 6), per global row; null: all rows.
  RowFilter(const uint64_t* live, const uint64_t* requested)
      : first_(live != nullptr ? live : requested), second_(live != nullptr ? requested : nullptr) {}

  bool has(int64_t row) const { return has_bit(first_, row) && has_bit(second_, row); }

  // Whether any row of [first, first + count) passes.
  bool has_any(int64_t first, int64_t count) const {
    for (int64_t row = first; row < first + count; row += 64) {
      if (bits(row, first + count) != 0) return true;
    }
    return false;
  }

  // Number of rows of [first, first + count) that pass.
  int64_t count(int64_t first, int64_t count) const {
    if (first_ == nullptr) return count;
    int64_t passing = 0;
    for (int64_t row = first; row < first + count; row += 64) passing += __builtin_popcountll(bits(row, first + count));
    return passing;
  }

  bool passes_all() const { return first_ == nullptr; }

  // Bit i: row first + i passes. At most 64 rows; `first` need not be a multiple of 64.
  uint64_t word(int64_t first, int64_t count) const { return bits(first, first + count); }

  // Writes the rows of [first, first + count) that pass to `passing`, counted from `first`.
  void list(int64_t first, int64_t count, int32_t* passing) const {
    for (int64_t row = first; row < first + count; row += 64) {
      for_each_bit(bits(row, first + count), [&](int bit) { *passing++ = static_cast<int32_t>(row - first + bit); });
    }
  }

 private:
  static bool has_bit(const uint64_t* set, int64_t row) { return set == nullptr || (set[row >> 6] >> (row & 63) & 1) != 0; }
  // The bits of the rows [row, end), at most 64 rows.
  uint64_t bits(int64_t row, int64_t end) const {
    if (first_ == nullptr) return low_bits(std::max<int64_t>(0, end - row));
    const uint64_t first = bits_of(first_, row, end);
    return second_ == nullptr ? first : first & bits_of(second_, row, end);
  }
  const uint64_t* first_;
  const uint64_t* second_;
};

}  // namespace trawl
