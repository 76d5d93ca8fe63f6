// The tile operations of src/base/amx_tiles.hpp in plain C++, as the processor manual defines them.
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
// The rows of each tile that are configured; 0 without a configuration.
inline uint8_t* rows_of() {
  thread_local uint8_t rows[8] = {};
  return rows;
}
// Unconfigured tiles fault on a real processor.
inline int rows_of(int number) {
  if (rows_of()[number] == 0) __builtin_trap();
  return rows_of()[number];
}

// Only tiles of 64 bytes a row.
template <typename Config>
void configure(const Config* config) {
  for (int number = 0; number < 8; ++number) {
    if (config->palette != 1 || config->column_bytes[number] != 64 || config->rows[number] > 16) __builtin_trap();
    rows_of()[number] = config->rows[number];
    std::memset(&tile(number), 0, sizeof(Tile));
  }
}
inline void release() { std::memset(rows_of(), 0, 8); }
inline void zero(int number) {
  rows_of(number);
  std::memset(&tile(number), 0, sizeof(Tile));
}
inline void load(int number, const void* base, int64_t stride) {
  const int rows = rows_of(number);
  std::memset(&tile(number), 0, sizeof(Tile));
  for (int r = 0; r < rows; ++r) std::memcpy(tile(number).bytes[r], static_cast<const char*>(base) + r * stride, 64);
}
inline void store(int number, void* base, int64_t stride) {
  const int rows = rows_of(number);
  for (int r = 0; r < rows; ++r) std::memcpy(static_cast<char*>(base) + r * stride, tile(number).bytes[r], 64);
}
// The sums have as many rows as the left operand, whose rows have as many values as the right one has rows.
inline int rows_of_product(int sum, int left, int right) {
  if (rows_of(sum) != rows_of(left) || rows_of(right) != 16) __builtin_trap();
  return rows_of(sum);
}

// sum[m][n] += products of the four bytes of left[m][k] and the four signed ones of right[k][n], modulo 2^32.
template <typename Left>
void add_dots(int sum, int left, int right) {
  const int count = rows_of_product(sum, left, right);
  for (int m = 0; m < count; ++m) {
    for (int n = 0; n < 16; ++n) {
      uint32_t value;
      std::memcpy(&value, tile(sum).bytes[m] + 4 * n, 4);
      for (int k = 0; k < 16; ++k) {
        for (int i = 0; i < 4; ++i) {
          value += static_cast<uint32_t>(static_cast<Left>(tile(left).bytes[m][4 * k + i]) * tile(right).bytes[k][4 * n + i]);
        }
      }
      std::memcpy(tile(sum).bytes[m] + 4 * n, &value, 4);
    }
  }
}
inline void dot(int sum, int rows, int digits) { add_dots<int8_t>(sum, rows, digits); }              // tdpbssd
inline void dot_unsigned(int sum, int rows, int columns) { add_dots<uint8_t>(sum, rows, columns); }  // tdpbusd

}  // namespace amx_emulation

#define TRAWL_TILE_CONFIGURE(config) amx_emulation::configure(config)
#define TRAWL_TILE_RELEASE() amx_emulation::release()
#define TRAWL_TILE_ZERO(number) amx_emulation::zero(number)
#define TRAWL_TILE_LOAD(number, base, stride) amx_emulation::load(number, base, stride)
#define TRAWL_TILE_STREAM(number, base, stride) amx_emulation::load(number, base, stride)
#define TRAWL_TILE_STORE(number, base, stride) amx_emulation::store(number, base, stride)
#define TRAWL_TILE_DOT(sum, rows, digits) amx_emulation::dot(sum, rows, digits)
#define TRAWL_TILE_WRITTEN(data) static_cast<void>(data)
#define TRAWL_TILE_DOT_UNSIGNED(sum, rows, columns) amx_emulation::dot_unsigned(sum, rows, columns)
