// The rows that a search may return: those in both the index's bitmap of live rows and the request's bitmap. Reads combine the
// two word by word, so no search copies a bitmap.
#pragma once
#include <algorithm>
#include <cstdint>

namespace trawl {

class RowFilter {
 public:
  // Bit (row & 63) of word (row >> 6), per global row; null: all rows.
  RowFilter(const uint64_t* live, const uint64_t* requested)
      : first_(live != nullptr ? live : requested), second_(live != nullptr ? requested : nullptr) {}

  bool has(int64_t row) const { return first_ == nullptr || (word(row >> 6) >> (row & 63) & 1) != 0; }

  // Whether any row of [first, first + count) passes.
  bool has_any(int64_t first, int64_t count) const {
    if (first_ == nullptr) return true;
    for (int64_t row = first; row < first + count;) {
      const int64_t in_word = row & 63, take = std::min<int64_t>(64 - in_word, first + count - row);
      const uint64_t mask = (take == 64 ? ~uint64_t{0} : (uint64_t{1} << take) - 1) << in_word;
      if ((word(row >> 6) & mask) != 0) return true;
      row += take;
    }
    return false;
  }

 private:
  uint64_t word(int64_t index) const { return second_ == nullptr ? first_[index] : first_[index] & second_[index]; }
  const uint64_t* first_;
  const uint64_t* second_;
};

}  // namespace trawl
