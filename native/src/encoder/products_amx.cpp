// Products with tdpbf16ps: tiles of 16 rows x 32 values by 32 values x 16 columns, 8,192 products an instruction.
//
// Another order of sums than that of products.hpp, so its vectors are another numeric kind (docs/models.md): for each 32 values, the
// products of the even ones and of the odd ones are summed apart, each by fused multiply-adds from zero, the two are added, and that is
// added to the sum. The last values of a depth that is no multiple of 32 are filled up with zeros.
#include "encoder/products.hpp"

#if defined(__x86_64__)
#include <cstring>

#ifdef TRAWL_AMX_EMULATION
#define TRAWL_TARGET
#else
#define TRAWL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#endif
#include "amx_tiles.hpp"
#include "encoder/lane_steps.hpp"

namespace trawl::encoder {
namespace {

constexpr int64_t kStep = 32;  // values of a row of a tile

struct alignas(64) TileConfig {
  uint8_t palette, start_row;
  uint8_t reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};

// Tiles 0-3: sums, the first two of `first` rows and the other two of `second`. 4 and 5: rows of a, or 5 columns of b if `fifth` says so.
// 6 and 7: columns of b.
TRAWL_AMX_BF16_TARGET inline void configure(int first, int second, int fifth = 0) {
  TileConfig config = {};
  config.palette = 1;
  const int rows[8] = {first, first, second, second, first, fifth > 0 ? fifth : second, 16, 16};
  for (int tile = 0; tile < 8; ++tile) config.column_bytes[tile] = 64, config.rows[tile] = static_cast<uint8_t>(rows[tile]);
  TRAWL_TILE_CONFIGURE(&config);
}

// Where the tiles of a step of 32 values are: `a` and 16 rows later `a2`, the columns `b` and `b2`; strides in bytes.
struct Operands {
  const uint16_t *a, *a2, *b, *b2;
  int64_t a_stride, b_stride;
};

// The end of a depth that is no multiple of 32, filled up with zeros.
struct End {
  alignas(64) uint16_t a[32][32], b[2][16][32];
};

template <bool kTwoRows, bool kTwoColumns>
TRAWL_AMX_BF16_TARGET inline __attribute__((always_inline)) void step(const Operands& o) {
  TRAWL_TILE_LOAD(4, o.a, o.a_stride);
  TRAWL_TILE_LOAD(6, o.b, o.b_stride);
  TRAWL_TILE_DOT_BF16(0, 4, 6);
  if (kTwoColumns) {
    TRAWL_TILE_LOAD(7, o.b2, o.b_stride);
    TRAWL_TILE_DOT_BF16(1, 4, 7);
  }
  if (kTwoRows) {
    TRAWL_TILE_LOAD(5, o.a2, o.a_stride);
    TRAWL_TILE_DOT_BF16(2, 5, 6);
    if (kTwoColumns) TRAWL_TILE_DOT_BF16(3, 5, 7);
  }
}

// `rows` rows (up to 32, as configured) by 16 or 32 columns. groups: groups of 16 columns of the panel.
template <bool kTwoRows, bool kTwoColumns>
TRAWL_AMX_BF16_TARGET void block(const ProductTask& t, int64_t row, int64_t rows, const uint16_t* panel, int64_t groups, int64_t group,
                                 float* sums) {
  TRAWL_TILE_ZERO(0);
  if (kTwoColumns) TRAWL_TILE_ZERO(1);
  if (kTwoRows) TRAWL_TILE_ZERO(2);
  if (kTwoRows && kTwoColumns) TRAWL_TILE_ZERO(3);
  const uint16_t *const a = t.a + row * t.a_stride, *const b = panel + group * 2 * kLanes;
  const int64_t full = t.depth / kStep * kStep, a_stride = t.a_stride * 2, b_stride = groups * 64;
  for (int64_t k = 0; k < full; k += kStep) {
    const uint16_t *const of_a = a + k, *const of_b = b + k * groups * kLanes;
    step<kTwoRows, kTwoColumns>({of_a, of_a + 16 * t.a_stride, of_b, of_b + 2 * kLanes, a_stride, b_stride});
  }
  if (full < t.depth) {
    End end;
    std::memset(&end, 0, sizeof end);
    const int64_t left = t.depth - full;
    for (int64_t r = 0; r < rows; ++r) std::memcpy(end.a[r], a + r * t.a_stride + full, static_cast<size_t>(left) * 2);
    for (int64_t k = 0; k < left; k += 2) {
      const uint16_t* const of_b = b + (full + k) * groups * kLanes;
      std::memcpy(end.b[0][k / 2], of_b, 64);
      if (kTwoColumns) std::memcpy(end.b[1][k / 2], of_b + 2 * kLanes, 64);
    }
    __asm__ volatile("" ::: "memory");  // a tile's load does not tell the compiler that it reads memory
    step<kTwoRows, kTwoColumns>({end.a[0], end.a[16], end.b[0][0], end.b[1][0], 64, 64});
  }
  float* const to = sums + row * t.sums_stride + group * kLanes;
  const int64_t stride = t.sums_stride * 4;
  TRAWL_TILE_STORE(0, to, stride);
  if (kTwoColumns) TRAWL_TILE_STORE(1, to + kLanes, stride);
  if (kTwoRows) TRAWL_TILE_STORE(2, to + 16 * t.sums_stride, stride);
  if (kTwoRows && kTwoColumns) TRAWL_TILE_STORE(3, to + 16 * t.sums_stride + kLanes, stride);
}

template <bool kTwoRows>
TRAWL_AMX_BF16_TARGET void rows_by_panels(const ProductTask& t, int64_t row, int64_t end, int64_t rows, int64_t first, int64_t last) {
  for (int64_t p = first; p < last; ++p) {
    const int64_t left = t.columns - p * kPanel, groups = (left < kPanel ? left : kPanel) / kLanes;
    const uint16_t* const panel = t.packed + p * kPanel * t.depth;
    float* const sums = t.sums + p * kPanel;
    for (int64_t group = 0; group < groups; group += 2) {
      for (int64_t at = row; at < end; at += rows) {
        if (group + 1 < groups) {
          block<kTwoRows, true>(t, at, rows, panel, groups, group, sums);
        } else {
          block<kTwoRows, false>(t, at, rows, panel, groups, group, sums);
        }
      }
    }
  }
}

// Up to 16 rows, for which reading the matrix takes most of the time: a panel of 64 columns is read in the order of addresses.
// Tiles 0-3: sums. 4: rows. 5-7: columns.
constexpr int64_t kAhead = 16384;  // bytes

template <bool kPrefetch>
TRAWL_AMX_BF16_TARGET void few_rows(const ProductTask& t, int64_t row, int64_t rows, const uint16_t* panel, float* sums) {
  TRAWL_TILE_ZERO(0);
  TRAWL_TILE_ZERO(1);
  TRAWL_TILE_ZERO(2);
  TRAWL_TILE_ZERO(3);
  const uint16_t* const a = t.a + row * t.a_stride;
  const int64_t full = t.depth / kStep * kStep, a_stride = t.a_stride * 2;
  const uint16_t* b = panel;
  for (int64_t k = 0; k < full; k += kStep, b += kStep * kPanel) {
    TRAWL_TILE_LOAD(4, a + k, a_stride);
    TRAWL_TILE_LOAD(5, b, 256);
    TRAWL_TILE_DOT_BF16(0, 4, 5);
    TRAWL_TILE_LOAD(6, b + 2 * kLanes, 256);
    TRAWL_TILE_DOT_BF16(1, 4, 6);
    TRAWL_TILE_LOAD(7, b + 4 * kLanes, 256);
    TRAWL_TILE_DOT_BF16(2, 4, 7);
    TRAWL_TILE_LOAD(5, b + 6 * kLanes, 256);
    TRAWL_TILE_DOT_BF16(3, 4, 5);
    if (kPrefetch) {
      const char* const ahead = reinterpret_cast<const char*>(b) + kAhead;
      for (int line = 0; line < 64; ++line) __builtin_prefetch(ahead + 64 * line, 0, 2);
    }
  }
  if (full < t.depth) {
    alignas(64) uint16_t end_a[16][kStep], end_b[4][16][kStep];
    std::memset(end_a, 0, sizeof end_a);
    std::memset(end_b, 0, sizeof end_b);
    const int64_t left = t.depth - full;
    for (int64_t r = 0; r < rows; ++r) std::memcpy(end_a[r], a + r * t.a_stride + full, static_cast<size_t>(left) * 2);
    for (int64_t k = 0; k < left; k += 2) {
      for (int group = 0; group < 4; ++group) std::memcpy(end_b[group][k / 2], b + k * kPanel + group * 2 * kLanes, 64);
    }
    __asm__ volatile("" : : "r"(end_a), "r"(end_b) : "memory");
    TRAWL_TILE_LOAD(4, end_a, 64);
    TRAWL_TILE_LOAD(5, end_b[0], 64);
    TRAWL_TILE_DOT_BF16(0, 4, 5);
    TRAWL_TILE_LOAD(6, end_b[1], 64);
    TRAWL_TILE_DOT_BF16(1, 4, 6);
    TRAWL_TILE_LOAD(7, end_b[2], 64);
    TRAWL_TILE_DOT_BF16(2, 4, 7);
    TRAWL_TILE_LOAD(5, end_b[3], 64);
    TRAWL_TILE_DOT_BF16(3, 4, 5);
  }
  float* const to = sums + row * t.sums_stride;
  TRAWL_TILE_STORE(0, to, t.sums_stride * 4);
  TRAWL_TILE_STORE(1, to + kLanes, t.sums_stride * 4);
  TRAWL_TILE_STORE(2, to + 2 * kLanes, t.sums_stride * 4);
  TRAWL_TILE_STORE(3, to + 3 * kLanes, t.sums_stride * 4);
}

template <bool kPrefetch>
TRAWL_AMX_BF16_TARGET void multiply(const ProductTask& t, int64_t first, int64_t last) {
  if (first >= last) return;
  __asm__ volatile("" ::: "memory");
  const int64_t full = t.rows / 32 * 32, left = t.rows - full;
  if (full > 0) {
    configure(16, 16);
    rows_by_panels<true>(t, 0, full, 32, first, last);
  }
  if (left > 16) {
    configure(16, static_cast<int>(left - 16));
    rows_by_panels<true>(t, full, t.rows, left, first, last);
  } else if (left > 0) {
    const int64_t whole = t.columns / kPanel < last ? t.columns / kPanel : last;
    if (first < whole) configure(static_cast<int>(left), static_cast<int>(left), 16);
    for (int64_t p = first; p < whole; ++p) few_rows<kPrefetch>(t, full, left, t.packed + p * kPanel * t.depth, t.sums + p * kPanel);
    if (whole < last) {
      configure(static_cast<int>(left), static_cast<int>(left));
      rows_by_panels<false>(t, full, t.rows, left, first > whole ? first : whole, last);
    }
  }
  TRAWL_TILE_RELEASE();
}

Products table(const char* name, void (*multiply)(const ProductTask&, int64_t, int64_t)) {
  return {name, multiply, add_bias, activate, normalize, softmax, divide};
}

}  // namespace
#ifdef TRAWL_AMX_BF16_TABLES  // variants for tests and measurements
const Products TRAWL_AMX_BF16_TABLES[] = {table("amx-bf16", multiply<true>), table("amx-bf16-plain", multiply<false>)};
#else
namespace {
const Products kTable = table("amx-bf16", multiply<true>);
}
const Products* const kAmxBf16Products = &kTable;
#endif
}  // namespace trawl::encoder
#else
namespace trawl::encoder {
const Products* const kAmxBf16Products = nullptr;
}
#endif
