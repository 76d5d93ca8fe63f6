// The tile instructions of scan_amx.cpp and bytes_amx.cpp as macros: test/amx_emulation.hpp replaces them on machines without tiles.
#pragma once
#include <cstdint>
#ifdef TRAWL_AMX_EMULATION
#include "amx_emulation.hpp"
#ifdef TRAWL_AMX_EMULATION_VECTORS
#include <immintrin.h>
#define TRAWL_AMX_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#else
#define TRAWL_AMX_TARGET
#endif
#else
#include <immintrin.h>
#define TRAWL_AMX_TARGET __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl,fma")))
// GCC believes that the instruction reads only the first eight bytes, so it must not know what happens to the rest.
#define TRAWL_TILE_CONFIGURE(config)                 \
  do {                                               \
    __asm__ volatile("" : : "r"(config) : "memory"); \
    _tile_loadconfig(config);                        \
  } while (0)
#define TRAWL_TILE_RELEASE() _tile_release()
#define TRAWL_TILE_ZERO(tile) _tile_zero(tile)
#define TRAWL_TILE_LOAD(tile, base, stride) _tile_loadd(tile, base, stride)
#define TRAWL_TILE_STREAM(tile, base, stride) _tile_stream_loadd(tile, base, stride)
#define TRAWL_TILE_STORE(tile, base, stride) _tile_stored(tile, base, stride)
// GCC believes that a load of a tile reads no memory, so what was written for one must be in memory before.
#define TRAWL_TILE_WRITTEN(data) __asm__ volatile("" : : "r"(data) : "memory")
#define TRAWL_TILE_DOT(sum, rows, digits) _tile_dpbssd(sum, rows, digits)
#define TRAWL_TILE_DOT_UNSIGNED(sum, rows, columns) _tile_dpbusd(sum, rows, columns)
#endif

namespace trawl {

struct alignas(64) TileConfig {
  uint8_t palette, start_row;
  uint8_t reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "the processor defines the layout");

}  // namespace trawl
