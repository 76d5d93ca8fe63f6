// Sizes that a caller chooses. They are checked before anything of that size is allocated.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "trawl/error.hpp"

namespace trawl {

// Most hits in the result of one search, all queries together: 4 GiB of row numbers and scores.
constexpr int64_t kMaxResultHits = int64_t{1} << 28;

// a * b, both at least 0. Throws kBadArgument if the product is larger than `most`; `what` names it in the message.
inline int64_t checked_product(int64_t a, int64_t b, int64_t most, const std::string& what) {
  if (a < 0 || b < 0 || (b > 0 && a > most / b)) {
    throw Error(ErrorCode::kBadArgument, what + " are " + std::to_string(a) + " x " + std::to_string(b) + ", at most " +
                                             std::to_string(most) + " fit; ask for fewer at once");
  }
  return a * b;
}

// For the 32-bit fields of files.
inline uint32_t checked_u32(uint64_t value, const std::string& what) {
  if (value > UINT32_MAX) throw Error(ErrorCode::kBadArgument, what + " is " + std::to_string(value) + ", more than 32 bits hold");
  return static_cast<uint32_t>(value);
}

// The places of each query in the arrays of a result: an index of fewer than k rows needs no more than its rows. Throws
// kBadArgument if the places of all queries are more than kMaxResultHits.
inline int64_t hit_places(int64_t queries, int64_t k, int64_t rows) {
  const int64_t places = std::min(k, rows);
  checked_product(queries, places, kMaxResultHits, "the hits of the queries");
  return places;
}

}  // namespace trawl
