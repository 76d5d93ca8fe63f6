// The hot loop's contract: one table of functions per instruction set.
//
// Numerics. Codes and query digits are int8 in [-127, 127]; their sum of products is at most 127*127*131072 < 2^31, so int32
// holds it exactly and every instruction set gets the same I. Where the hardware multiplies unsigned by signed
// bytes the query carries +128 and the accumulator starts at -128*code_sum; sums wrap modulo 2^32 and come out right.
//
// Row test. A pair is kept unless    v < theta,   v = s*float(I) + phi*beta + a*epsilon + c*n     (float32)
// is certain: NaN keeps. query_pack.hpp derives phi, a, c, theta so that v < theta proves that the row is not
// in the answer, whatever the order of the four terms and whether multiply-adds are fused. Instruction sets may
// therefore keep different pairs; the answer is the same because survivors are settled in float64.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

constexpr int kLanes = 16;         // queries in a group
constexpr int kMaxScanRows = 64;   // rows a scan call may be given: they stay in the first two cache levels
constexpr int kMaxRowsQueries = 16;  // queries a scan_rows call may be given
constexpr int kMaxScanGroups = 4;    // groups a scan_groups call may be given
constexpr int kScoreLanes = 8;       // rows scored side by side
constexpr int kMaxSumQueries = 8;     // queries a sum_rows call may be given
constexpr int kMaxHits = kMaxScanRows * kMaxScanGroups * kLanes;

// rows <= kMaxScanRows. Every array is readable up to rows rounded up to 16; hits of rows past `rows` are the
// caller's to ignore.
struct CodeRows {
  const int8_t* codes_i8;      // [rows][padded], 64-byte aligned
  int64_t padded;              // a multiple of 64
  int rows;
  const float* scale_f32;
  const float* residual_f32;
  const float* norm_f32;
  const float* bias_f32;       // the stored float64 bias, prepared for the row test
  const int32_t* code_sum_i32;
  bool first_pass;             // these codes come from memory, not from a cache: fetch ahead
};

// One value a query.
struct RowTest {
  const float* phi;
  const float* a;
  const float* c;
  const float* theta;
};

struct Hit {
  uint16_t row;    // in CodeRows
  uint16_t query;  // counted from the first query of the call
  float value;     // v of the row test: the row may be dropped later, once theta has risen above it
};

// packed: groups of 16 queries, each [padded/4][16][4] digits. All row/query pairs of rows x 16*groups are tested.
using ScanGroups = size_t (*)(const CodeRows& rows, const int8_t* packed, int groups, const RowTest& test, Hit* hits);
// natural: queries x [padded] digits. The same test with lanes over rows: better for few queries.
using ScanRows = size_t (*)(const CodeRows& rows, const int8_t* natural, int queries, const RowTest& test, Hit* hits);
// Float64 sum of values * codes, any order (the bound allows for any).
using DotCodes = double (*)(const double* values_f64, const int8_t* codes_i8, int64_t padded);

// Exact scores, in the definition's own order of summation: see score.hpp. rows: kScoreLanes pointers to float32[dimension]
// at any alignment; queries_f64: queries x dimension; sums_f64[queries][kScoreLanes] gets the inner products, or the
// sums of squared differences.
using SumRows = void (*)(bool squared_difference, const double* const* queries_f64, int queries,
                         const uint8_t* const* rows, int64_t dimension, double* sums_f64);

// sums[row][direction] of kProjectRows rows x kProjectDirections directions over `dimension` coordinates, each sum one
// float64 chain with the coordinates in order. rows_f64[kProjectRows][dimension]; panel_f32[dimension][kProjectDirections].
// Where the rows' values are float32 the products are exact, so the sums have the same bits whether multiply-adds are
// fused or not, with every instruction set.
constexpr int kProjectRows = 8;
constexpr int kProjectDirections = 16;
using Project = void (*)(const double* rows_f64, const float* panel_f32, int64_t dimension, double* sums_f64);

struct Kernels {
  const char* name;
  ScanGroups scan_groups;
  ScanRows scan_rows;
  DotCodes dot_codes;
  SumRows sum_rows;
  Project project;
  bool groups_offset;   // packed digits carry +128
  bool rows_offset;     // natural digits carry +128
  int groups_from;      // of the queries left over by full groups, this many are worth a padded one
  int groups_at_once;   // groups that a scan_groups call is best given
};

// Each is null where the file was built for another processor family.
extern const Kernels* const kSerialKernels;
extern const Kernels* const kAvx2Kernels;
extern const Kernels* const kAvx512VnniKernels;
extern const Kernels* const kAmxKernels;
extern const Kernels* const kNeonKernels;

}  // namespace trawl
