// AMX int8: tdpbssd multiplies 16 rows x 64 columns by 64 columns x 16 queries, signed by signed into int32, without offset
// or saturation. The left operand is 16 rows in the layout of the file, the right one a group of queries in lane order.
// scan_rows calls AVX-512 VNNI, which every machine with AMX has: with few queries, tiles would be mostly padding.
#include "dense/kernels/kernel_choice.hpp"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12's own headers leave the masked-off operand undefined
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "dense/kernels/amx_row_tests.hpp"

namespace trawl {

namespace {

// One part of the codes that a later call reads, after each step of 64 columns.
class Ahead {
 public:
  Ahead(const CodeRows& rows, int64_t steps)
      : at_(rows.ahead), end_(rows.ahead + rows.ahead_bytes), each_((rows.ahead_bytes / 64 + steps - 1) / (steps > 0 ? steps : 1) * 64) {}
  TRAWL_AMX_INLINE void step() {
    for (const int8_t* const end = end_ - at_ < each_ ? end_ : at_ + each_; at_ < end; at_ += 64) prefetch(at_);
  }

 private:
  const int8_t *at_, *end_;
  int64_t each_;
};

// Digits of wide rows fill the second cache level. They are loaded with a hint that they are used once, so that they leave the first to
// the rows.
#define TRAWL_LOAD_DIGITS(tile, base)    \
  do {                                   \
    if (kNarrow) {                       \
      TRAWL_TILE_LOAD(tile, base, 64);   \
    } else {                             \
      TRAWL_TILE_STREAM(tile, base, 64); \
    }                                    \
  } while (0)

// Tiles 0-3 hold sums, the others rows and digits. Four sums in turn hide the latency of a product, and each loaded tile is used
// twice or four times. `dots` gets [2][32][16], as StoredDots expects.
template <bool kNarrow>
TRAWL_AMX_TARGET size_t scan_tiles(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  alignas(64) int32_t buffers[2][1024];
  int buffer = 0;
  const int64_t padded = rows.padded, group_bytes = kGroupQueries * padded, steps = padded / 64;
  StoredDots stored(rows, hits);
  Ahead ahead(rows, (rows.rows + 31) / 32 * ((groups + 1) / 2) * steps);
  int row = 0;
  for (; row + 16 < rows.rows; row += 32) {
    const int8_t* const codes = rows.codes_i8 + row * padded;
    int group = 0;
    for (; group + 2 <= groups; group += 2, buffer ^= 1) {
      const int8_t *const digits0 = lane_order + group * group_bytes, *const digits1 = digits0 + group_bytes;
      int32_t* const dots = buffers[buffer];
      TRAWL_TILE_ZERO(0);
      TRAWL_TILE_ZERO(1);
      TRAWL_TILE_ZERO(2);
      TRAWL_TILE_ZERO(3);
      stored.test_during<kNarrow>(steps, test, [&](int64_t step) TRAWL_AMX_TARGET {
        TRAWL_TILE_LOAD(4, codes + step * 64, padded);
        TRAWL_LOAD_DIGITS(6, digits0 + step * 1024);
        TRAWL_TILE_DOT(0, 4, 6);
        TRAWL_LOAD_DIGITS(7, digits1 + step * 1024);
        TRAWL_TILE_DOT(1, 4, 7);
        TRAWL_TILE_LOAD(5, codes + 16 * padded + step * 64, padded);
        TRAWL_TILE_DOT(2, 5, 6);
        TRAWL_TILE_DOT(3, 5, 7);
        ahead.step();
      });
      TRAWL_TILE_STORE(0, dots, 64);
      TRAWL_TILE_STORE(1, dots + 512, 64);
      TRAWL_TILE_STORE(2, dots + 256, 64);
      TRAWL_TILE_STORE(3, dots + 768, 64);
      stored.put(dots, row, row, group * kGroupQueries, (group + 1) * kGroupQueries);
    }
    if (group == groups) continue;
    const int8_t* const digits = lane_order + group * group_bytes;
    int32_t* const dots = buffers[buffer];
    buffer ^= 1;
    if (row % 64 == 0 && row + 48 < rows.rows) {
      // The next 32 rows too; they are not repeated below.
      TRAWL_TILE_ZERO(0);
      TRAWL_TILE_ZERO(1);
      TRAWL_TILE_ZERO(2);
      TRAWL_TILE_ZERO(3);
      stored.test_during<kNarrow>(steps, test, [&](int64_t step) TRAWL_AMX_TARGET {
        TRAWL_LOAD_DIGITS(7, digits + step * 1024);
        TRAWL_TILE_LOAD(4, codes + step * 64, padded);
        TRAWL_TILE_DOT(0, 4, 7);
        TRAWL_TILE_LOAD(5, codes + 16 * padded + step * 64, padded);
        TRAWL_TILE_DOT(1, 5, 7);
        TRAWL_TILE_LOAD(6, codes + 32 * padded + step * 64, padded);
        TRAWL_TILE_DOT(2, 6, 7);
        TRAWL_TILE_LOAD(4, codes + 48 * padded + step * 64, padded);
        TRAWL_TILE_DOT(3, 4, 7);
        ahead.step();
        ahead.step();
      });
      TRAWL_TILE_STORE(0, dots, 64);
      TRAWL_TILE_STORE(1, dots + 256, 64);
      TRAWL_TILE_STORE(2, dots + 512, 64);
      TRAWL_TILE_STORE(3, dots + 768, 64);
      stored.put(dots, row, row + 32, group * kGroupQueries, group * kGroupQueries);
    } else if (!(row % 64 == 32)) {
      TRAWL_TILE_ZERO(0);
      TRAWL_TILE_ZERO(1);
      for (int64_t step = 0; step < steps; ++step) {
        TRAWL_TILE_LOAD(7, digits + step * 1024, 64);
        TRAWL_TILE_LOAD(4, codes + step * 64, padded);
        TRAWL_TILE_DOT(0, 4, 7);
        TRAWL_TILE_LOAD(5, codes + 16 * padded + step * 64, padded);
        TRAWL_TILE_DOT(1, 5, 7);
        ahead.step();
      }
      TRAWL_TILE_STORE(0, dots, 64);
      TRAWL_TILE_STORE(1, dots + 256, 64);
      const Lanes lanes(test, group * kGroupQueries);
      stored.test_now(dots, row, lanes);
      stored.test_now(dots + 256, row + 16, lanes);
    }
  }
  stored.finish<kNarrow>(test);
  if (row < rows.rows) {
    // 16 rows that are left.
    const int8_t* const codes = rows.codes_i8 + row * padded;
    int32_t* const dots = buffers[0];
    for (int group = 0; group < groups; group += 4) {
      const int8_t* const digits = lane_order + group * group_bytes;
      // Groups past the last are the last once more.
      const int last = groups - 1 - group;
      const int8_t* const digits1 = digits + (last < 1 ? last : 1) * group_bytes;
      const int8_t* const digits2 = digits + (last < 2 ? last : 2) * group_bytes;
      const int8_t* const digits3 = digits + (last < 3 ? last : 3) * group_bytes;
      TRAWL_TILE_ZERO(0);
      TRAWL_TILE_ZERO(1);
      TRAWL_TILE_ZERO(2);
      TRAWL_TILE_ZERO(3);
      for (int64_t step = 0; step < steps; ++step) {
        TRAWL_TILE_LOAD(7, codes + step * 64, padded);
        TRAWL_TILE_LOAD(4, digits + step * 1024, 64);
        TRAWL_TILE_DOT(0, 7, 4);
        TRAWL_TILE_LOAD(5, digits1 + step * 1024, 64);
        TRAWL_TILE_DOT(1, 7, 5);
        TRAWL_TILE_LOAD(6, digits2 + step * 1024, 64);
        TRAWL_TILE_DOT(2, 7, 6);
        TRAWL_TILE_LOAD(4, digits3 + step * 1024, 64);
        TRAWL_TILE_DOT(3, 7, 4);
        ahead.step();
      }
      TRAWL_TILE_STORE(0, dots, 64);
      TRAWL_TILE_STORE(1, dots + 256, 64);
      TRAWL_TILE_STORE(2, dots + 512, 64);
      TRAWL_TILE_STORE(3, dots + 768, 64);
      for (int one = 0; one < 4 && one <= last; ++one) {
        stored.test_now(dots + 256 * one, row, Lanes(test, (group + one) * kGroupQueries));
      }
    }
  }
  return stored.count();
}

TRAWL_AMX_TARGET void begin() {
  TileConfig config = {};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) config.column_bytes[tile] = 64, config.rows[tile] = 16;
  TRAWL_TILE_CONFIGURE(&config);
}
TRAWL_AMX_TARGET void end() { TRAWL_TILE_RELEASE(); }

size_t scan_rows(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits) {
#ifdef TRAWL_AMX_EMULATION
  return kSerialKernels->scan_rows(rows, row_order, queries, test, hits);
#else
  return kAvx512VnniKernels->scan_rows(rows, row_order, queries, test, hits);
#endif
}

double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
#ifdef TRAWL_AMX_EMULATION
  return kSerialKernels->dot_codes(values, codes, padded);
#else
  return kAvx512VnniKernels->dot_codes(values, codes, padded);
#endif
}

void sum_rows(bool squared_difference, const double* const* queries, int query_count, const uint8_t* const* rows, int64_t dimension,
              double* sums) {
#ifdef TRAWL_AMX_EMULATION
  kSerialKernels->sum_rows(squared_difference, queries, query_count, rows, dimension, sums);
#else
  kAvx512VnniKernels->sum_rows(squared_difference, queries, query_count, rows, dimension, sums);
#endif
}

void project(const double* rows, const float* panel, int64_t dimension, double* sums) {
#ifdef TRAWL_AMX_EMULATION
  kSerialKernels->project(rows, panel, dimension, sums);
#else
  kAvx512VnniKernels->project(rows, panel, dimension, sums);
#endif
}

// For narrow rows the tests of single rows would take longer than the products.
TRAWL_AMX_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits) {
  return rows.padded <= KernelChoice::kNarrow ? scan_tiles<true>(rows, lane_order, groups, test, hits)
                                              : scan_tiles<false>(rows, lane_order, groups, test, hits);
}

#ifdef TRAWL_AMX_EMULATION
constexpr bool kRowsOffset = false;
#else
constexpr bool kRowsOffset = true;
#endif

// Per query and 1,000,000 rows a core takes 0.56 ms for codes of 768 bytes and 0.26 ms for a prefilter of 320 (bench/search.md,
// "AMX"), and what the prefilter adds takes longer than the difference: about 0.4 ms, as measured with AVX-512 VNNI. With fewer
// queries memory limits the speed, and the prefilter saves more than half of what is read.
constexpr int64_t kCodesAloneFrom = 128;

const Kernels kTable = {
    .name = "amx",
    .scan_groups = scan_groups,
    .scan_rows = scan_rows,
    .dot_codes = dot_codes,
    .sum_rows = sum_rows,
    .project = project,
    .groups_offset = 0,
    .rows_offset = kRowsOffset,
    .groups_from = 5,
    .groups_at_once = 4,
    .row_step = 32,
    .most_rows = 64,
    .codes_alone_from = kCodesAloneFrom,
    .begin = begin,
    .end = end,
};

}  // namespace

#ifndef TRAWL_AMX_EMULATION
const Kernels* const kAmxKernels = &kTable;
#elif defined(TRAWL_AMX_EMULATION_VECTORS)
extern const Kernels* const kEmulatedAmxVectorKernels;
const Kernels* const kEmulatedAmxVectorKernels = &kTable;
#else
extern const Kernels* const kEmulatedAmxKernels;
const Kernels* const kEmulatedAmxKernels = &kTable;
#endif

}  // namespace trawl

#else
namespace trawl {
const Kernels* const kAmxKernels = nullptr;
}
#endif
