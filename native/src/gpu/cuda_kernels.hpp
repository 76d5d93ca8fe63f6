// What the kernels in scan.cu and their callers agree on: arguments, shapes, names. Both compilers read this file.
#pragma once
#include <cstdint>

namespace trawl::cuda {

constexpr int kTileRows = 128;     // rows that a block of threads tests together; a shard's arrays are padded to a multiple of it
constexpr int kGroupRows = 32;     // rows of one maximum in the sample pass
constexpr int kThreads = 128;      // threads of a block, in every kernel
constexpr int kMostFew = 8;        // queries of a scan that memory limits, so that it multiplies without matrix units
constexpr int kNarrowQueries = 64, kWideQueries = 128;  // queries of a tile in the two kernels for many queries
constexpr int kStages = 4;         // steps of 64 bytes that are on their way to shared memory

// A row's numbers in the row test: s, epsilon, n and the prepared bias (row_test_biases()).
struct alignas(16) RowNumbers {
  float scale, residual, norm, bias;
};
// A query's numbers in the row test.
struct alignas(16) QueryNumbers {
  float phi, a, c, theta;
};

// A pair that the row test kept. `dot`: the float64 sum of the rotated query times the codes.
struct alignas(8) DeviceHit {
  uint32_t row;  // number in the shard
  uint32_t query;
  double dot_f64;
};

// The one argument of every kernel. Tile i has the rows from (first_tile + i * tile_stride) * kTileRows on; only rows of
// [begin, end) count.
struct ScanArguments {
  const int8_t* codes_i8;          // [rows padded to kTileRows][padded]
  const RowNumbers* row_numbers;   // [rows padded to kTileRows]
  const uint32_t* passing;         // a bit per row, padded to kTileRows; null: all rows pass
  const int8_t* digits_i8;         // [queries padded to kWideQueries][padded]
  const double* rotated_f64;       // [queries][padded]
  const QueryNumbers* query_numbers;  // [queries padded to kWideQueries]
  DeviceHit* hits;                 // [capacity]
  uint32_t* count;                 // of hits, also of those beyond the capacity
  unsigned long long* maxima;      // [queries][groups]: the sample's largest v with its row, see maximum_key()
  int64_t padded;
  uint32_t begin, end;
  uint32_t first_tile, tile_stride, tiles;
  uint32_t queries, groups, capacity;
};

// Orders finite v as unsigned numbers; the row is in the low half. 0: no row.
constexpr uint32_t row_of_key(uint64_t key) { return static_cast<uint32_t>(key); }

constexpr int64_t shared_bytes_few(int queries, int64_t padded) { return queries * padded; }
constexpr int64_t shared_bytes_many(int tile_queries) {
  return kStages * 64 * (kTileRows + tile_queries) + 16 * (kTileRows + tile_queries) + 16;
}

// Names of the kernels in the module.
constexpr const char* kHitsFew1 = "trawl_hits_few_1";
constexpr const char* kHitsFew4 = "trawl_hits_few_4";
constexpr const char* kHitsFew8 = "trawl_hits_few_8";
constexpr const char* kHitsNarrow = "trawl_hits_narrow";
constexpr const char* kHitsWide = "trawl_hits_wide";
constexpr const char* kSampleNarrow = "trawl_sample_narrow";
constexpr const char* kSampleWide = "trawl_sample_wide";
constexpr const char* kDots = "trawl_dots";

}  // namespace trawl::cuda
