// Unsigned integers in groups of seven bits, low group first.
#pragma once
#include <cstdint>
#include <vector>

namespace trawl::lexical {

inline void append_varint(std::vector<uint8_t>& bytes, uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<uint8_t>(value));
}

// Reads a value and moves `at` past it. Returns false if the value does not end before `end` or does not fit 64 bits.
inline bool read_varint(const uint8_t*& at, const uint8_t* end, uint64_t& value) {
  value = 0;
  for (int shift = 0; at < end && shift < 64; shift += 7) {
    const uint8_t byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return shift < 63 || byte <= 1;
  }
  return false;
}

}  // namespace trawl::lexical
