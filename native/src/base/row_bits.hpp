// Sets of rows: bit (row & 63) of word (row >> 6).
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

// Bits 0 to count - 1, count from 0 to 64.
inline uint64_t low_bits(int64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// The bits of the rows [first, end) of a set, at most 64 rows.
inline uint64_t bits_of(const uint64_t* set, int64_t first, int64_t end) {
  const int64_t count = end - first < 64 ? end - first : 64;
  if (count <= 0) return 0;
  const int64_t shift = first & 63;
  uint64_t bits = set[first >> 6] >> shift;
  if (shift != 0 && (first >> 6) < ((first + count - 1) >> 6)) bits |= set[(first >> 6) + 1] << (64 - shift);
  return bits & low_bits(count);
}

// Calls visit(bit number) for each bit that is set, rising.
template <typename Visit>
inline void for_each_bit(uint64_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(__builtin_ctzll(bits));
}

}  // namespace trawl
