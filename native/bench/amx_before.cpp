// The AMX kernel before it tested between its products, to measure the difference: kAmxBefore.
//
// AMX int8: tdpbssd multiplies 16 rows x 64 columns by 64 columns x 16 queries, signed by signed into int32, without offset
// or saturation. The left operand is 16 rows in the layout of the file, the right one a packed group of queries.
// scan_rows is the one of AVX-512 VNNI, which every machine with AMX has: for few queries, tiles would be mostly padding.
#include "kernels.hpp"

#if defined(__x86_64__)
#include <cstring>

#include "amx_tiles.hpp"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12's own headers leave the masked-off operand undefined
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace trawl {

namespace {

struct alignas(64) TileConfig {
  uint8_t palette, start_row;
  uint8_t reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "the processor defines the layout");

// Lanes are queries: compares one row's 16 dot products with 16 thresholds.
#ifdef TRAWL_AMX_EMULATION
size_t test_lanes(const CodeRows& rows, int row, const int32_t* dot, const RowTest& test, int first_query, Hit* hits) {
  const float s = rows.scale_f32[row], bias = rows.bias_f32[row];
  const float residual = rows.residual_f32[row], norm = rows.norm_f32[row];
  size_t count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int q = first_query + lane;
    const float value =
        s * static_cast<float>(dot[lane]) + test.phi[q] * bias + test.a[q] * residual + test.c[q] * norm;
    if (!(value < test.theta[q])) hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(q), value};
  }
  return count;
}
#else
__attribute__((target("avx512f,fma"))) size_t test_lanes(const CodeRows& rows, int row, const int32_t* dot,
                                                                const RowTest& test, int first_query, Hit* hits) {
  __m512 value = _mm512_mul_ps(_mm512_loadu_ps(test.c + first_query), _mm512_set1_ps(rows.norm_f32[row]));
  value = _mm512_fmadd_ps(_mm512_loadu_ps(test.a + first_query), _mm512_set1_ps(rows.residual_f32[row]), value);
  value = _mm512_fmadd_ps(_mm512_loadu_ps(test.phi + first_query), _mm512_set1_ps(rows.bias_f32[row]), value);
  value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dot)), _mm512_set1_ps(rows.scale_f32[row]), value);
  uint32_t mask = _mm512_cmp_ps_mask(value, _mm512_loadu_ps(test.theta + first_query), _CMP_NLT_UQ);
  if (__builtin_expect(mask == 0, 1)) return 0;
  alignas(64) float values[kLanes];
  _mm512_store_ps(values, value);
  size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(first_query + lane), values[lane]};
  }
  return count;
}
#endif

// 32 rows x 32 queries. Tiles 0-3 hold sums, 4-5 rows, 6-7 digits; each loaded tile is used twice.
TRAWL_AMX_TARGET void dots_32x32(const int8_t* codes, int64_t padded, const int8_t* group0, const int8_t* group1,
                                 int32_t* dots) {
  TRAWL_TILE_ZERO(0);
  TRAWL_TILE_ZERO(1);
  TRAWL_TILE_ZERO(2);
  TRAWL_TILE_ZERO(3);
  for (int64_t j = 0; j < padded; j += 64) {
    TRAWL_TILE_LOAD(4, codes + j, padded);
    TRAWL_TILE_LOAD(5, codes + 16 * padded + j, padded);
    TRAWL_TILE_LOAD(6, group0 + j * kLanes, 64);
    TRAWL_TILE_LOAD(7, group1 + j * kLanes, 64);
    TRAWL_TILE_DOT(0, 4, 6);
    TRAWL_TILE_DOT(1, 4, 7);
    TRAWL_TILE_DOT(2, 5, 6);
    TRAWL_TILE_DOT(3, 5, 7);
  }
  TRAWL_TILE_STORE(0, dots, 64);
  TRAWL_TILE_STORE(1, dots + 256, 64);
  TRAWL_TILE_STORE(2, dots + 512, 64);
  TRAWL_TILE_STORE(3, dots + 768, 64);
}

TRAWL_AMX_TARGET void dots_16x16(const int8_t* codes, int64_t padded, const int8_t* group, int32_t* dots) {
  TRAWL_TILE_ZERO(0);
  for (int64_t j = 0; j < padded; j += 64) {
    TRAWL_TILE_LOAD(4, codes + j, padded);
    TRAWL_TILE_LOAD(6, group + j * kLanes, 64);
    TRAWL_TILE_DOT(0, 4, 6);
  }
  TRAWL_TILE_STORE(0, dots, 64);
}

TRAWL_AMX_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* packed, int groups, const RowTest& test,
                                    Hit* hits) {
  TileConfig config = {};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) config.column_bytes[tile] = 64, config.rows[tile] = 16;
  TRAWL_TILE_CONFIGURE(&config);
  alignas(64) int32_t dots[4 * 256];
  size_t count = 0;
  const int64_t padded = rows.padded, group_bytes = kLanes * padded;
  int row = 0;
  const auto test_tile = [&](int first, int group, const int32_t* tile) {
    for (int i = 0; i < 16; ++i) {
      count += test_lanes(rows, first + i, tile + 16 * i, test, group * kLanes, hits + count);
    }
  };
  for (; row + 16 < rows.rows; row += 32) {
    const int8_t* codes = rows.codes_i8 + row * padded;
    int group = 0;
    for (; group + 2 <= groups; group += 2) {
      dots_32x32(codes, padded, packed + group * group_bytes, packed + (group + 1) * group_bytes, dots);
      test_tile(row, group, dots);
      test_tile(row, group + 1, dots + 256);
      test_tile(row + 16, group, dots + 512);
      test_tile(row + 16, group + 1, dots + 768);
    }
    for (; group < groups; ++group) {
      dots_16x16(codes, padded, packed + group * group_bytes, dots);
      test_tile(row, group, dots);
      dots_16x16(codes + 16 * padded, padded, packed + group * group_bytes, dots);
      test_tile(row + 16, group, dots);
    }
  }
  for (; row < rows.rows; row += 16) {
    for (int group = 0; group < groups; ++group) {
      dots_16x16(rows.codes_i8 + row * padded, padded, packed + group * group_bytes, dots);
      test_tile(row, group, dots);
    }
  }
  TRAWL_TILE_RELEASE();
  return count;
}

size_t scan_rows(const CodeRows& rows, const int8_t* natural, int queries, const RowTest& test, Hit* hits) {
#ifdef TRAWL_AMX_EMULATION
  return kSerialKernels->scan_rows(rows, natural, queries, test, hits);
#else
  return kAvx512VnniKernels->scan_rows(rows, natural, queries, test, hits);
#endif
}

double dot_codes(const double* values, const int8_t* codes, int64_t padded) {
#ifdef TRAWL_AMX_EMULATION
  return kSerialKernels->dot_codes(values, codes, padded);
#else
  return kAvx512VnniKernels->dot_codes(values, codes, padded);
#endif
}

void sum_rows(bool squared_difference, const double* const* queries, int query_count, const uint8_t* const* rows,
              int64_t dimension, double* sums) {
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

constexpr Kernels kTable = {"amx-before", scan_groups, scan_rows, dot_codes, sum_rows, project, false, true, 5, 2};

}  // namespace

extern const Kernels* const kAmxBefore;
const Kernels* const kAmxBefore = &kTable;

}  // namespace trawl

#else
namespace trawl {
extern const Kernels* const kAmxBefore;
const Kernels* const kAmxBefore = nullptr;
}
#endif
