// The tile operations of src/amx_tiles.hpp in plain C++, as the processor manual defines them.
#pragma once
#include <cstdint>
#include <cstring>

namespace amx_emulation {

struct Tile {
  int8_t bytes[16][64];
};
inline Tile& tile(int number) {
  thread_local Tile tiles[8];
  return tiles[number];
}
inline bool& configured() {
  thread_local bool is = false;
  return is;
}

inline void load(int number, const void* base, int64_t stride) {
  for (int r = 0; r < 16; ++r) std::memcpy(tile(number).bytes[r], static_cast<const char*>(base) + r * stride, 64);
}
inline void store(int number, void* base, int64_t stride) {
  for (int r = 0; r < 16; ++r) std::memcpy(static_cast<char*>(base) + r * stride, tile(number).bytes[r], 64);
}
// tdpbssd: sum[m][n] += products of the four signed bytes of rows[m][k] and digits[k][n].
inline void dot(int sum, int rows, int digits) {
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      int32_t value;
      std::memcpy(&value, tile(sum).bytes[m] + 4 * n, 4);
      for (int k = 0; k < 16; ++k) {
        for (int i = 0; i < 4; ++i) value += tile(rows).bytes[m][4 * k + i] * tile(digits).bytes[k][4 * n + i];
      }
      std::memcpy(tile(sum).bytes[m] + 4 * n, &value, 4);
    }
  }
}
// Unconfigured tiles fault on a real processor.
inline void require_configured() {
  if (!configured()) __builtin_trap();
}

}  // namespace amx_emulation

#define TRAWL_TILE_CONFIGURE(config) (amx_emulation::configured() = (config)->palette == 1)
#define TRAWL_TILE_RELEASE() (amx_emulation::configured() = false)
#define TRAWL_TILE_ZERO(number) \
  (amx_emulation::require_configured(), std::memset(&amx_emulation::tile(number), 0, sizeof(amx_emulation::Tile)))
#define TRAWL_TILE_LOAD(number, base, stride) amx_emulation::load(number, base, stride)
#define TRAWL_TILE_STREAM(number, base, stride) amx_emulation::load(number, base, stride)
#define TRAWL_TILE_STORE(number, base, stride) amx_emulation::store(number, base, stride)
#define TRAWL_TILE_DOT(sum, rows, digits) amx_emulation::dot(sum, rows, digits)
