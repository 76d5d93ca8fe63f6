// The functions of the hot loop: one table per instruction set.
//
// Numerics. Codes and query digits are int8 in [-127, 127]. The sum of their products is at most 127*127*131072 < 2^31, so int32
// holds it exactly and every instruction set gets the same I. If the hardware multiplies unsigned by signed bytes, an offset is
// added to the query's digits and the accumulator starts at -offset*code_sum; sums wrap modulo 2^32, and the result is exact.
// A query has its digits in row order (one digit after another, for scan_rows) and in lane order (four digits of each of 16 queries
// side by side, for scan_groups). Those in lane order may be coarser (`group_digits`), because AVX2 multiplies small digits in fewer
// instructions. The query then has one row test for each order.
//
// Row test. A pair is dropped only if    v < theta,   v = s*float(I) + phi*beta + a*epsilon + c*n     (float32)
// is true: NaN keeps it. query_pack.hpp derives phi, a, c, theta so that v < theta proves that the row is not
// in the answer, for any order of the four terms and with or without fused multiply-adds. Instruction sets may
// therefore keep different pairs. The answer is the same, because kept pairs are bounded in float64.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

constexpr int kGroupQueries = 16;    // queries in a group
constexpr int kLargestDigit = 127;   // of digits in row order
constexpr int kMaxScanRows = 64;     // most rows in one scan call, so that they stay in the first two cache levels
constexpr int kMaxRowsQueries = 16;  // most queries in one scan_rows call
constexpr int kMaxScanGroups = 4;    // most groups in one scan_groups call
constexpr int kScoreLanes = 8;       // rows scored side by side
constexpr int kMaxSumQueries = 8;    // most queries in one sum_rows call
constexpr int kMaxHits = kMaxScanRows * kMaxScanGroups * kGroupQueries;

// rows <= kMaxScanRows. Every array is readable up to `rows` rounded up to a multiple of 16. Callers ignore hits of rows past
// `rows`.
struct CodeRows {
  const int8_t* codes_i8;  // [rows][padded], 64-byte aligned
  int64_t padded;          // a multiple of 64
  int rows;
  const float* scale_f32;
  const float* residual_f32;
  const float* test_norm_f32;  // n of the row test: the norm of codes, the size of a prefilter's rows
  const float* bias_f32;       // the stored float64 bias, prepared for the row test
  const int32_t* code_sum_i32;
  bool first_pass;                // the codes are not in a cache yet, so prefetch
  const int8_t* ahead = nullptr;  // codes that a later call reads, for kernels that prefetch them while they multiply
  int64_t ahead_bytes = 0;        // in this call
};

// One value per query.
struct QueryTest {
  const float* phi;
  const float* a;
  const float* c;
  const float* theta;
};

struct Hit {
  uint16_t row;    // counted from the first row of the CodeRows
  uint16_t query;  // counted from the first query of the call
  float value;     // v of the row test with the digits of the call: the row can be dropped later, when theta has risen above it
};

// lane_order: digits of groups of 16 queries, each [padded/4][16][4]. Tests all pairs of rows x 16*groups queries.
using ScanGroups = size_t (*)(const CodeRows& rows, const int8_t* lane_order, int groups, const QueryTest& test, Hit* hits);
// row_order: digits, [queries][padded]. The same test with rows as lanes, which is faster for few queries.
using ScanRows = size_t (*)(const CodeRows& rows, const int8_t* row_order, int queries, const QueryTest& test, Hit* hits);
// I of one row and one query.
using DotDigits = int32_t (*)(const int8_t* row_order, const int8_t* codes_i8, int64_t padded);
// Float64 sum of values * codes in any order; the bound covers all orders.
using DotCodes = double (*)(const double* values_f64, const int8_t* codes_i8, int64_t padded);

// Exact scores, in the definition's own order of summation: see score.hpp. rows: kScoreLanes pointers to float32[dimension]
// at any alignment; queries_f64: queries x dimension; sums_f64[queries][kScoreLanes] gets the inner products, or the
// sums of squared differences.
using SumRows = void (*)(bool squared_difference, const double* const* queries_f64, int queries, const uint8_t* const* rows,
                         int64_t dimension, double* sums_f64);

// sums[row][component] of kProjectRows rows x kProjectColumns components over `dimension` coordinates, each sum one
// float64 chain with the coordinates in order. rows_f64[kProjectRows][dimension]; panel_f32[dimension][kProjectColumns].
// If the rows' values are float32, the products are exact, so the sums have the same bits with every instruction set, with or
// without fused multiply-adds.
constexpr int kProjectRows = 8;
constexpr int kProjectColumns = 16;
using Project = void (*)(const double* rows_f64, const float* panel_f32, int64_t dimension, double* sums_f64);

struct Kernels {
  const char* name;
  ScanGroups scan_groups;
  ScanRows scan_rows;
  DotCodes dot_codes;
  SumRows sum_rows;
  Project project;
  int groups_offset;                     // is added to digits in lane order: 128, `group_digits` or 0
  bool rows_offset;                      // 128 is added to digits in row order
  int groups_from;                       // from this number on, the queries beyond the full groups are faster as a padded group
  int groups_at_once;                    // the fastest number of groups per scan_groups call
  int row_step = 16;                     // the fastest numbers of rows are multiples of this
  int most_rows = 48;                    // 12 * 4 for AVX-512 VNNI
  int64_t codes_alone_from = INT64_MAX;  // from this number of queries on, a search by the codes is faster without a prefilter
  void (*begin)() = nullptr;             // called on a thread before its scan_groups calls, and `end` after them; see ScanSession
  void (*end)() = nullptr;
  int group_digits = kLargestDigit;  // digits in lane order are in [-group_digits, group_digits]
  DotDigits dot_digits = nullptr;    // of kernels whose digits in lane order are coarser; those in row order have no offset
};

// Keeps what a thread's scan_groups calls need, as long as it lives.
class ScanSession {
 public:
  explicit ScanSession(const Kernels& kernels) : kernels_(kernels) {
    if (kernels_.begin != nullptr) kernels_.begin();
  }
  ~ScanSession() {
    if (kernels_.end != nullptr) kernels_.end();
  }
  ScanSession(const ScanSession&) = delete;
  ScanSession& operator=(const ScanSession&) = delete;

 private:
  const Kernels& kernels_;
};

// Rows of a scan call: they must stay in the first two cache levels while all queries are compared with them.
inline int64_t rows_at_once(const Kernels& kernels, int64_t padded) {
  const int64_t fit = 49152 / padded / kernels.row_step * kernels.row_step;
  return fit < kernels.row_step ? kernels.row_step : fit > kernels.most_rows ? kernels.most_rows : fit;
}

// The number of groups of a batch that scan_groups handles; scan_rows handles the remaining queries.
inline int64_t groups_to_scan(const Kernels& kernels, int64_t queries) {
  return queries / kGroupQueries + (queries % kGroupQueries >= kernels.groups_from);
}

// A pointer is null if its file was compiled for another processor family.
extern const Kernels* const kSerialKernels;
extern const Kernels* const kAvx2Kernels;
extern const Kernels* const kAvx512VnniKernels;
extern const Kernels* const kAmxKernels;
extern const Kernels* const kNeonKernels;

}  // namespace trawl
