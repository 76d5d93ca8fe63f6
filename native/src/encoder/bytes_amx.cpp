// Products in int8 with AMX: tdpbusd multiplies 16 rows x 64 codes without a sign by 64 codes with one x 16 columns, and adds exact sums
// in int32 (Intel's manual of its instruction sets). Both operands lie in memory as it takes them: rows of codes, and of a panel the
// codes of 16 fours of k, 64 bytes for each 16 columns.
#include "encoder/byte_products.hpp"
#if defined(__x86_64__)
#include "base/amx_tiles.hpp"
#if !defined(TRAWL_AMX_EMULATION) || defined(TRAWL_AMX_EMULATION_VECTORS)
#define TRAWL_WIDE
#endif
#define TRAWL_NAME "amx"
#define TRAWL_TARGET TRAWL_AMX_TARGET
#include "encoder/lane_bytes.hpp"

namespace trawl::encoder {
namespace {

constexpr int64_t kStep = 64;  // codes of a row in a tile
constexpr int64_t kTileRows = 16;
constexpr int kTileSums = 256;

// All rows in tiles of equally many, so that one configuration serves them all. The last tile may repeat rows of the one before it.
struct RowTiles {
  int64_t all, count, rows;
  explicit RowTiles(int64_t all) : all(all), count((all + kTileRows - 1) / kTileRows), rows((all + count - 1) / count) {}
  int64_t first_row(int64_t tile) const { return tile * rows < all - rows ? tile * rows : all - rows; }
};

// Tiles 0-3 are sums, 4 and 5 rows, 6 and 7 columns.
TRAWL_INLINE void configure(int64_t rows) {
  TileConfig config = {};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) {
    config.column_bytes[tile] = 64;
    config.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : kTileRows);
  }
  TRAWL_TILE_CONFIGURE(&config);
}

// The products of T tiles of rows and V groups of columns, T * V <= 4. Four sums in turn hide the latency of an instruction.
template <int T, int V>
TRAWL_INLINE void add_products(const uint8_t* upper, const uint8_t* lower, int64_t row_stride, const int8_t* columns, int64_t stride) {
  TRAWL_TILE_LOAD(4, upper, row_stride);
  TRAWL_TILE_LOAD(6, columns, stride);
  TRAWL_TILE_DOT_UNSIGNED(0, 4, 6);
  if constexpr (V > 1) {
    TRAWL_TILE_LOAD(7, columns + 64, stride);
    TRAWL_TILE_DOT_UNSIGNED(1, 4, 7);
  }
  if constexpr (T > 1) {
    TRAWL_TILE_LOAD(5, lower, row_stride);
    TRAWL_TILE_DOT_UNSIGNED(2, 5, 6);
    if constexpr (V > 1) TRAWL_TILE_DOT_UNSIGNED(3, 5, 7);
  }
  if constexpr (V > 2) {
    TRAWL_TILE_LOAD(6, columns + 128, stride);
    TRAWL_TILE_DOT_UNSIGNED(2, 4, 6);
    TRAWL_TILE_LOAD(7, columns + 192, stride);
    TRAWL_TILE_DOT_UNSIGNED(3, 4, 7);
  }
}

// What is read of the next panel, as wide as this one, for the second cache level.
template <int V>
TRAWL_INLINE void prefetch_next(const int8_t* next, int64_t stride) {
  for (int i = 0; i < kTileRows; ++i, next += stride) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(next + v * 64, 0, 2);
  }
}

struct Panel {
  const int8_t* codes;
  int64_t groups;
  const int8_t* last_codes;  // a copy of those after the last whole step, in the room of one
};

// Sums of rows from upper_row and, if T is 2, from lower_row on, at `sums` as [T][V][rows of a tile][16].
template <int T, int V>
TRAWL_INLINE void sum_tiles(const ByteTask& t, const RowTiles& tiles, int64_t upper_row, int64_t lower_row, int64_t column,
                            const Panel& panel, int64_t group, int32_t* sums) {
  const int32_t* const offset_corrections = t.offset_corrections + column;
  // The same sums for every row.
  TRAWL_TILE_LOAD(0, offset_corrections, 0);
  if constexpr (V > 1) TRAWL_TILE_LOAD(1, offset_corrections + kFloatLanes, 0);
  if constexpr (T > 1) TRAWL_TILE_LOAD(2, offset_corrections, 0);
  if constexpr (T > 1 && V > 1) TRAWL_TILE_LOAD(3, offset_corrections + kFloatLanes, 0);
  if constexpr (V > 2) {
    TRAWL_TILE_LOAD(2, offset_corrections + 2 * kFloatLanes, 0);
    TRAWL_TILE_LOAD(3, offset_corrections + 3 * kFloatLanes, 0);
  }
  const uint8_t *const upper = t.a + upper_row * t.depth, *const lower = t.a + lower_row * t.depth;
  const int64_t whole = t.depth / kStep * kStep, rest = t.depth - whole, stride = panel.groups * 64;
  const int8_t* const codes = panel.codes + group * 64;
  for (int64_t k = 0; k < whole; k += kStep) {
    add_products<T, V>(upper + k, lower + k, t.depth, codes + k / 4 * stride, stride);
    if (upper_row == 0) prefetch_next<V>(codes + (t.depth + k) / 4 * stride, stride);
  }
  if (rest != 0) {
    alignas(64) uint8_t last[2 * kTileRows * kStep] = {};
    for (int64_t r = 0; r < tiles.rows; ++r) {
      std::memcpy(last + r * kStep, upper + r * t.depth + whole, static_cast<size_t>(rest));
      if (T > 1) std::memcpy(last + (kTileRows + r) * kStep, lower + r * t.depth + whole, static_cast<size_t>(rest));
    }
    TRAWL_TILE_WRITTEN(last);
    add_products<T, V>(last, last + kTileRows * kStep, kStep, panel.last_codes + group * 64, stride);
  }
  TRAWL_TILE_STORE(0, sums, 64);
  if constexpr (V > 1) TRAWL_TILE_STORE(1, sums + kTileSums, 64);
  if constexpr (T > 1) TRAWL_TILE_STORE(2, sums + V * kTileSums, 64);
  if constexpr (T > 1 && V > 1) TRAWL_TILE_STORE(3, sums + 3 * kTileSums, 64);
  if constexpr (V > 2) {
    TRAWL_TILE_STORE(2, sums + 2 * kTileSums, 64);
    TRAWL_TILE_STORE(3, sums + 3 * kTileSums, 64);
  }
}

template <typename Step>
TRAWL_TARGET void put_tile(const ByteTask& t, int64_t row, int64_t rows, int64_t column, int64_t groups, const int32_t* sums,
                           const Step& step) {
  for (int64_t v = 0; v < groups; ++v, column += kFloatLanes, sums += kTileSums) {
    const Lanes scale = load(t.column_scales + column), bias = load(t.bias + column);
    for (int64_t r = 0; r < rows; ++r) {
      IntLanes sum;
      std::memcpy(&sum, sums + r * kFloatLanes, 64);
      step.put_at((row + r) * t.columns + column, value_of(sum, t.row_scales[row + r], scale, bias));
    }
  }
}

// For T tiles of rows from the tile `at` on.
template <int T, int V, typename Step>
TRAWL_INLINE void put_block(const ByteTask& t, const RowTiles& tiles, int64_t at, int64_t column, const Panel& panel, int64_t group,
                            const Step& step) {
  alignas(64) int32_t sums[T * V * kTileSums];
  const int64_t upper = tiles.first_row(at), lower = tiles.first_row(at + T - 1);
  sum_tiles<T, V>(t, tiles, upper, lower, column, panel, group, sums);
  put_tile(t, upper, tiles.rows, column, V, sums, step);
  if (T > 1) put_tile(t, lower, tiles.rows, column, V, sums + V * kTileSums, step);
}

template <typename Step>
TRAWL_INLINE void multiply_panel(const ByteTask& t, const RowTiles& tiles, int64_t first_column, const Panel& panel, const Step& step) {
  int64_t at = 0;
  for (; at + 2 <= tiles.count; at += 2) {
    int64_t v = 0;
    for (; v + 2 <= panel.groups; v += 2) put_block<2, 2>(t, tiles, at, first_column + v * kFloatLanes, panel, v, step);
    if (v < panel.groups) put_block<2, 1>(t, tiles, at, first_column + v * kFloatLanes, panel, v, step);
  }
  if (at == tiles.count) return;
  if (panel.groups == 4) return put_block<1, 4>(t, tiles, at, first_column, panel, 0, step);
  for (int64_t v = 0; v < panel.groups; ++v) put_block<1, 1>(t, tiles, at, first_column + v * kFloatLanes, panel, v, step);
}

template <typename Step>
TRAWL_INLINE void multiply_panels(const ByteTask& t, int64_t first, int64_t last, const Step& step) {
  if (t.rows == 0) return;
  const RowTiles tiles(t.rows);
  const int64_t whole = t.depth / kStep * kStep, rest = t.depth - whole;
  // Bytes past the codes of a panel are multiplied by zeros of the rows.
  alignas(64) int8_t last_codes[kPanel * kStep] = {};
  configure(tiles.rows);
  for (int64_t p = first; p < last; ++p) {
    const int64_t column = p * kPanel, left = t.columns - column, width = left < kPanel ? left : kPanel;
    const int8_t* const codes = t.packed + column * t.depth;
    if (rest != 0) {
      std::memcpy(last_codes, codes + whole * width, static_cast<size_t>(rest * width));
      TRAWL_TILE_WRITTEN(last_codes);
    }
    multiply_panel(t, tiles, column, {codes, width / kFloatLanes, last_codes}, step);
  }
  TRAWL_TILE_RELEASE();
}

}  // namespace
}  // namespace trawl::encoder

#include "encoder/byte_table.hpp"

namespace trawl::encoder {
#ifndef TRAWL_AMX_EMULATION
const ByteProducts* const kAmxByteProducts = &kTable;
#elif defined(TRAWL_AMX_EMULATION_VECTORS)
extern const ByteProducts* const kEmulatedAmxVectorByteProducts;
const ByteProducts* const kEmulatedAmxVectorByteProducts = &kTable;
#else
extern const ByteProducts* const kEmulatedAmxByteProducts;
const ByteProducts* const kEmulatedAmxByteProducts = &kTable;
#endif
}  // namespace trawl::encoder
#else
namespace trawl::encoder {
const ByteProducts* const kAmxByteProducts = nullptr;
}
#endif
