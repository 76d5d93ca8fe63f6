// AMX int8: tdpbssd multiplies 16 rows x 64 columns by 64 columns x 16 queries, signed by signed into int32, without offset
// or saturation. The left operand is 16 rows in the layout of the file, the right one a packed group of queries.
// scan_rows is the one of AVX-512 VNNI, which every machine with AMX has: for few queries, tiles would be mostly padding.
#include "kernel_choice.hpp"

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

#if defined(TRAWL_AMX_EMULATION) && !defined(TRAWL_AMX_EMULATION_VECTORS)
#define TRAWL_AMX_PLAIN_TESTS
#define TRAWL_AMX_INLINE inline
#else
#define TRAWL_AMX_INLINE TRAWL_AMX_TARGET inline __attribute__((always_inline))
#endif

// 16 queries of the row test, in registers.
#ifdef TRAWL_AMX_PLAIN_TESTS
struct Lanes {
  Lanes(const RowTest& test, int first) : test(test), first(first) {}
  const RowTest& test;
  int first;
};

// Appends the pairs of a row that are kept.
inline size_t test_row(const CodeRows& rows, int row, const int32_t* dot, const Lanes& lanes, Hit* hits) {
  size_t count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int q = lanes.first + lane;
    const float value = rows.scale_f32[row] * static_cast<float>(dot[lane]) + lanes.test.phi[q] * rows.bias_f32[row] +
                        lanes.test.a[q] * rows.residual_f32[row] + lanes.test.c[q] * rows.norm_f32[row];
    if (!(value < lanes.test.theta[q])) hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(q), value};
  }
  return count;
}
inline void prefetch(const int8_t*) {}
#else
struct Lanes {
  TRAWL_AMX_INLINE Lanes(const RowTest& test, int first)
      : phi(_mm512_loadu_ps(test.phi + first)), a(_mm512_loadu_ps(test.a + first)), c(_mm512_loadu_ps(test.c + first)),
        theta(_mm512_loadu_ps(test.theta + first)), first(first) {}
  __m512 phi, a, c, theta;
  int first;
};

TRAWL_AMX_TARGET __attribute__((noinline)) size_t append(uint32_t mask, __m512 value, int row, int first_query, Hit* hits) {
  alignas(64) float values[kLanes];
  _mm512_store_ps(values, value);
  size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    hits[count++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(first_query + lane), values[lane]};
  }
  return count;
}

TRAWL_AMX_INLINE size_t test_row(const CodeRows& rows, int row, const int32_t* dot, const Lanes& lanes, Hit* hits) {
  __m512 value = _mm512_mul_ps(lanes.c, _mm512_set1_ps(rows.norm_f32[row]));
  value = _mm512_fmadd_ps(lanes.a, _mm512_set1_ps(rows.residual_f32[row]), value);
  value = _mm512_fmadd_ps(lanes.phi, _mm512_set1_ps(rows.bias_f32[row]), value);
  value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dot)), _mm512_set1_ps(rows.scale_f32[row]), value);
  const uint32_t mask = _mm512_cmp_ps_mask(value, lanes.theta, _CMP_NLT_UQ);
  return __builtin_expect(mask == 0, 1) ? 0 : append(mask, value, row, lanes.first, hits);
}
TRAWL_AMX_INLINE void prefetch(const int8_t* line) { _mm_prefetch(line, _MM_HINT_T1); }

// Limits of the numbers of 16 rows.
struct RowLimits {
  float scale_low, scale_high, bias_low, bias_high, residual, norm;
};
TRAWL_AMX_INLINE RowLimits limits_of(const CodeRows& rows, int row) {
  const __m512 scale = _mm512_loadu_ps(rows.scale_f32 + row), bias = _mm512_loadu_ps(rows.bias_f32 + row);
  const __m512 residual = _mm512_loadu_ps(rows.residual_f32 + row), norm = _mm512_loadu_ps(rows.norm_f32 + row);
  // If one of the numbers is NaN, so are the sum and all limits, and then every pair is kept.
  const float sum = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(scale, _mm512_setzero_ps()), _mm512_mul_ps(bias, _mm512_setzero_ps())),
                                                       _mm512_add_ps(_mm512_mul_ps(residual, _mm512_setzero_ps()), _mm512_mul_ps(norm, _mm512_setzero_ps()))));
  return {_mm512_reduce_min_ps(scale), _mm512_reduce_max_ps(scale), _mm512_reduce_min_ps(bias), _mm512_reduce_max_ps(bias),
          _mm512_reduce_max_ps(residual) + sum, _mm512_reduce_max_ps(norm)};
}

// Integers such that a dot product below them proves v < theta for each of 16 rows: with u = theta - phi*beta - a*epsilon - c*n for the
// limits of the rows, v < theta if s*I < u.
TRAWL_AMX_INLINE __m512i least_dots(const RowLimits& limits, const Lanes& lanes) {
  const __m512 first = _mm512_mul_ps(lanes.phi, _mm512_set1_ps(limits.bias_low)), second = _mm512_mul_ps(lanes.phi, _mm512_set1_ps(limits.bias_high));
  const __m512 residual = _mm512_mul_ps(lanes.a, _mm512_set1_ps(limits.residual)), norm = _mm512_mul_ps(lanes.c, _mm512_set1_ps(limits.norm));
  __m512 u = _mm512_sub_ps(_mm512_sub_ps(_mm512_sub_ps(lanes.theta, _mm512_max_ps(first, second)), residual), norm);
  // More than the rounding of u.
  const __m512 size = _mm512_add_ps(_mm512_add_ps(_mm512_abs_ps(lanes.theta), _mm512_add_ps(_mm512_abs_ps(first), _mm512_abs_ps(second))),
                                    _mm512_add_ps(residual, norm));
  u = _mm512_fnmadd_ps(size, _mm512_set1_ps(0x1p-20f), u);
  const __mmask16 positive = _mm512_cmp_ps_mask(u, _mm512_setzero_ps(), _CMP_GT_OQ);
  const __m512 scale = _mm512_mask_blend_ps(positive, _mm512_set1_ps(limits.scale_low), _mm512_set1_ps(limits.scale_high));
  __m512 least = _mm512_div_ps(u, scale);
  least = _mm512_sub_ps(_mm512_fnmadd_ps(_mm512_abs_ps(least), _mm512_set1_ps(0x1p-20f), least), _mm512_set1_ps(1));
  // A NaN stays one (the second operand is returned), and its integer is the smallest, which keeps every pair; +inf becomes large. theta = +inf, of
  // padding queries, drops every row that has finite numbers.
  least = _mm512_mask_mov_ps(least, _mm512_cmp_ps_mask(lanes.theta, _mm512_set1_ps(__builtin_inff()), _CMP_EQ_OQ),
                             _mm512_add_ps(_mm512_set1_ps(0x1p30f), _mm512_mul_ps(_mm512_setzero_ps(), _mm512_add_ps(_mm512_add_ps(first, second), _mm512_add_ps(residual, norm)))));
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(2147483520.0f), least));
}
#endif

// The tests of dot products that tiles have stored. They run between the products of the next tiles, so that neither waits. Half 0 and
// half 1 are 32 rows by 16 queries each.
class StoredDots {
 public:
  TRAWL_AMX_INLINE StoredDots(const CodeRows& rows, Hit* hits) : rows_(rows), hits_(hits) {}

  // What the next products are: dots of 32 rows from each row of `first_rows` with the queries from each of `first_queries`.
  void put(const int32_t* dots, int row0, int row1, int query0, int query1) {
    dots_ = dots;
    row_[0] = row0, row_[1] = row1, query_[0] = query0, query_[1] = query1;
    full_ = true;
  }

  // Tests those that are stored. multiply(step) does one of `steps` parts of the next products.
  template <bool kNarrow, typename Multiply>
  TRAWL_AMX_INLINE void test_during(int64_t steps, const RowTest& test, const Multiply& multiply) {
    if (!full_) {
      for (int64_t step = 0; step < steps; ++step) multiply(step);
      return;
    }
    const Lanes lanes0(test, query_[0]), lanes1(test, query_[1]);
#ifndef TRAWL_AMX_PLAIN_TESTS
    if (kNarrow) {
      // One tile of 16 x 16 after every fourth part of the steps.
      int64_t tile = 0;
      const auto one = [&]() TRAWL_AMX_TARGET {
        const int half = static_cast<int>(tile & 1), part = static_cast<int>(tile >> 1) * 16;
        test_tile(dots_ + 512 * half + 16 * part, row_[half] + part, half ? lanes1 : lanes0);
        ++tile;
      };
      for (int64_t step = 0; step < steps; ++step) {
        multiply(step);
        if (tile < 4 && tile * steps < 4 * (step + 1)) one();
      }
      while (tile < 4) one();
      full_ = false;
      return;
    }
#endif
    const int64_t each = steps > 0 ? (32 + steps - 1) / steps : 32;
    int64_t at = 0;
    for (int64_t step = 0; step < steps; ++step) {
      multiply(step);
      for (const int64_t end = at + each < 32 ? at + each : 32; at < end; ++at) test_both(at, lanes0, lanes1);
    }
    for (; at < 32; ++at) test_both(at, lanes0, lanes1);
    full_ = false;
  }

  template <bool kNarrow>
  TRAWL_AMX_INLINE void finish(const RowTest& test) {
    test_during<kNarrow>(0, test, [](int64_t) {});
  }

  // Tests 16 rows x 16 queries at once.
  TRAWL_AMX_INLINE void test_now(const int32_t* dots, int row, const Lanes& lanes) {
    for (int i = 0; i < 16; ++i) count_ += test_row(rows_, row + i, dots + 16 * i, lanes, hits_ + count_);
  }
  size_t count() const { return count_; }

 private:
  TRAWL_AMX_INLINE void test_both(int64_t at, const Lanes& lanes0, const Lanes& lanes1) {
    const int i = static_cast<int>(at);
    count_ += test_row(rows_, row_[0] + i, dots_ + 16 * i, lanes0, hits_ + count_);
    count_ += test_row(rows_, row_[1] + i, dots_ + 512 + 16 * i, lanes1, hits_ + count_);
  }
#ifndef TRAWL_AMX_PLAIN_TESTS
  TRAWL_AMX_INLINE void test_tile(const int32_t* dots, int row, const Lanes& lanes) {
    __m512i most = _mm512_load_si512(dots), other = _mm512_load_si512(dots + 16);
#pragma GCC unroll 16
    for (int i = 2; i < 16; i += 2) {
      most = _mm512_max_epi32(most, _mm512_load_si512(dots + 16 * i));
      other = _mm512_max_epi32(other, _mm512_load_si512(dots + 16 * i + 16));
    }
    most = _mm512_max_epi32(most, other);
    if (row_limits_of_ != row) limits_ = limits_of(rows_, row), row_limits_of_ = row;
    if (__builtin_expect(_mm512_cmpge_epi32_mask(most, least_dots(limits_, lanes)) != 0, 0)) test_now(dots, row, lanes);
  }
  RowLimits limits_ = {};
  int row_limits_of_ = -1;
#endif

  const CodeRows& rows_;
  Hit* const hits_;
  size_t count_ = 0;
  bool full_ = false;
  const int32_t* dots_ = nullptr;
  int row_[2] = {}, query_[2] = {};
};

// One part of the codes that a later call reads, after each step of 64 columns.
class Ahead {
 public:
  Ahead(const CodeRows& rows, int64_t steps) : at_(rows.ahead), end_(rows.ahead + rows.ahead_bytes), each_((rows.ahead_bytes / 64 + steps - 1) / (steps ? steps : 1) * 64) {}
  TRAWL_AMX_INLINE void step() {
    for (const int8_t* const end = end_ - at_ < each_ ? end_ : at_ + each_; at_ < end; at_ += 64) prefetch(at_);
  }

 private:
  const int8_t *at_, *end_;
  int64_t each_;
};

// Digits of wide rows fill the second cache level. They are loaded with a hint that they are used once, so that they leave the first to
// the rows.
#define TRAWL_LOAD_DIGITS(tile, base)  \
  do {                                 \
    if (kNarrow) {                     \
      TRAWL_TILE_LOAD(tile, base, 64); \
    } else {                           \
      TRAWL_TILE_STREAM(tile, base, 64); \
    }                                  \
  } while (0)

// Tiles 0-3 hold sums, the others rows and digits. Four sums in turn hide the latency of a product, and each loaded tile is used
// twice or four times. `dots` gets [2][32][16], as StoredDots expects.
template <bool kNarrow>
TRAWL_AMX_TARGET size_t scan_tiles(const CodeRows& rows, const int8_t* packed, int groups, const RowTest& test, Hit* hits) {
  alignas(64) int32_t buffers[2][1024];
  int buffer = 0;
  const int64_t padded = rows.padded, group_bytes = kLanes * padded, steps = padded / 64;
  StoredDots stored(rows, hits);
  Ahead ahead(rows, (rows.rows + 31) / 32 * ((groups + 1) / 2) * steps);
  int row = 0;
  for (; row + 16 < rows.rows; row += 32) {
    const int8_t* const codes = rows.codes_i8 + row * padded;
    int group = 0;
    for (; group + 2 <= groups; group += 2, buffer ^= 1) {
      const int8_t *const digits0 = packed + group * group_bytes, *const digits1 = digits0 + group_bytes;
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
      stored.put(dots, row, row, group * kLanes, (group + 1) * kLanes);
    }
    if (group == groups) continue;
    const int8_t* const digits = packed + group * group_bytes;
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
      stored.put(dots, row, row + 32, group * kLanes, group * kLanes);
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
      const Lanes lanes(test, group * kLanes);
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
      const int8_t* const digits = packed + group * group_bytes;
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
        stored.test_now(dots + 256 * one, row, Lanes(test, (group + one) * kLanes));
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

// For narrow rows the tests of single rows would take longer than the products.
TRAWL_AMX_TARGET size_t scan_groups(const CodeRows& rows, const int8_t* packed, int groups, const RowTest& test, Hit* hits) {
  return rows.padded <= KernelChoice::kNarrow ? scan_tiles<true>(rows, packed, groups, test, hits)
                                              : scan_tiles<false>(rows, packed, groups, test, hits);
}

#ifdef TRAWL_AMX_EMULATION
constexpr bool kRowsOffset = false;
#else
constexpr bool kRowsOffset = true;
#endif

// Per query and 1,000,000 rows a core takes 0.56 ms for rows of 768 bytes and 0.26 ms for those of a prefilter of 320 (bench/README.md,
// "AMX"), and what the prefilter adds takes longer than the difference: about 0.4 ms, as measured with AVX-512 VNNI. With fewer
// queries memory limits the speed, and the prefilter saves more than half of what is read.
constexpr int64_t kCodesAloneFrom = 128;

const Kernels kTable = {"amx", scan_groups, scan_rows, dot_codes, sum_rows, project, false, kRowsOffset, 5, 4, 32, 64, kCodesAloneFrom, begin, end};

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
