// A 64-bit checksum that detects accidental damage (torn writes, bad disks). It is not cryptographic.
// Four multiply-rotate chains over 8-byte words, about as fast as memory; the length is mixed in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trawl {

inline uint64_t checksum64(const void* data, size_t bytes, uint64_t seed = 0) {
  constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ull, kPrime2 = 0xC2B2AE3D27D4EB4Full;
  const auto rotate = [](uint64_t x, int r) { return x << r | x >> (64 - r); };
  const auto* p = static_cast<const uint8_t*>(data);
  uint64_t lane[4] = {seed + kPrime1, seed ^ kPrime2, seed + 1, seed - kPrime1};
  size_t left = bytes;
  for (; left >= 32; left -= 32, p += 32) {
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, p + 8 * i, 8);
      lane[i] = rotate(lane[i] + word * kPrime2, 31) * kPrime1;
    }
  }
  uint64_t sum = bytes * kPrime1;
  for (int i = 0; i < 4; ++i) sum = rotate(sum ^ lane[i], 27) * kPrime1 + kPrime2;
  for (; left > 0; --left, ++p) sum = rotate(sum ^ (*p * kPrime2), 11) * kPrime1;
  sum ^= sum >> 33;
  sum *= kPrime2;
  sum ^= sum >> 29;
  return sum;
}

}  // namespace trawl
