// The first pass of a flat search on an NVIDIA GPU: the row test of docs/certificate.md over the codes of a shard. `make ptx`
// compiles it to generated/scan.ptx. The integer sums are exact; v has the four terms of the row test in float32, without -ftz and fast
// math, so the proof covers it for any order of the terms and with fused multiply-adds.
#include "cuda_kernels.hpp"
#ifndef TRAWL_DEVICE
#include "device.hpp"
#endif

namespace trawl::cuda {

TRAWL_DEVICE float row_test(const RowNumbers& row, const QueryNumbers& query, int sum) {
  return row.scale * static_cast<float>(sum) + (query.phi * row.bias + (query.a * row.residual + query.c * row.norm));
}

TRAWL_DEVICE bool row_counts(const ScanArguments& scan, uint32_t row) {
  return row >= scan.begin && row < scan.end && (scan.passing == nullptr || (scan.passing[row >> 5] >> (row & 31) & 1) != 0);
}

TRAWL_DEVICE bool tile_counts(const ScanArguments& scan, uint32_t first_row) {
  if (scan.passing == nullptr) return true;
  const uint32_t* words = scan.passing + (first_row >> 5);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

TRAWL_DEVICE void keep(const ScanArguments& scan, uint32_t row, uint32_t query) {
  const uint32_t at = add_to_count(scan.count);
  if (at < scan.capacity) {
    scan.hits[at].row = row;
    scan.hits[at].query = query;
  }
}

// 0 for a row that is no bound of anything: v is infinite or NaN.
TRAWL_DEVICE unsigned long long maximum_key(float v, uint32_t row) {
  if (!(v - v == 0)) return 0;
  const uint32_t bits = bits_of(v);
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(ordered) << 32 | row;
}

TRAWL_DEVICE unsigned long long larger(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

// At most kMostFew queries. A half warp reads four rows at once, 256 bytes of each with one instruction.
template <int kQueries>
TRAWL_DEVICE void scan_few(const ScanArguments& scan) {
  constexpr int kRows = 4, kDeep = 3, kPairs = kRows * kQueries;
  const auto chunks = static_cast<int>(scan.padded / 16);
  auto* digits = reinterpret_cast<int4*>(shared_memory());  // [kQueries][chunks]
  for (int i = static_cast<int>(thread_index()); i < kQueries * chunks; i += kThreads) {
    digits[i] = reinterpret_cast<const int4*>(scan.digits_i8)[i];
  }
  sync_threads();
  const uint32_t warp = thread_index() / 32, lane = thread_index() % 32;
  const auto at = static_cast<int>(lane % 16);
  for (uint32_t tile = block_index(); tile < scan.tiles; tile += block_count()) {
    const uint32_t group_row = (scan.first_tile + tile * scan.tile_stride) * kTileRows + warp * kGroupRows;
    if (scan.passing != nullptr && scan.passing[group_row >> 5] == 0) continue;
    for (uint32_t step = 0; step < kGroupRows; step += 2 * kRows) {
      const uint32_t first_row = group_row + step + lane / 16 * kRows;
      const int4* codes = reinterpret_cast<const int4*>(scan.codes_i8 + first_row * scan.padded);
      int sums[kRows][kQueries] = {};
      for (int first = at; first < chunks; first += 16 * kDeep) {
        int4 row[kDeep][kRows];  // many loads on their way
#pragma unroll
        for (int i = 0; i < kDeep; ++i) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            const int c = first + 16 * i;
            row[i][r] = c < chunks ? load_once(codes + static_cast<int64_t>(r) * chunks + c) : int4{0, 0, 0, 0};
          }
        }
#pragma unroll
        for (int i = 0; i < kDeep; ++i) {
          const int c = first + 16 * i < chunks ? first + 16 * i : at;
#pragma unroll
          for (int q = 0; q < kQueries; ++q) {
            const int4 digit = digits[q * chunks + c];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              int sum = sums[r][q];
              sum = dot_of_four(row[i][r].x, digit.x, sum);
              sum = dot_of_four(row[i][r].y, digit.y, sum);
              sum = dot_of_four(row[i][r].z, digit.z, sum);
              sums[r][q] = dot_of_four(row[i][r].w, digit.w, sum);
            }
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
#pragma unroll
          for (int mask = 8; mask > 0; mask /= 2) sums[r][q] += shuffle_xor(sums[r][q], mask);
        }
      }
      // Every lane of a half warp has all sums. Lane i tests the pairs i, i + 16, ...
#pragma unroll
      for (int first = 0; first < kPairs; first += 16) {
        int sum = 0;
#pragma unroll
        for (int p = first; p < first + 16 && p < kPairs; ++p) {
          if (at == p - first) sum = sums[p / kQueries][p % kQueries];
        }
        const int pair = first + at;
        if (pair >= kPairs) continue;
        const uint32_t row = first_row + static_cast<uint32_t>(pair / kQueries), query = static_cast<uint32_t>(pair % kQueries);
        if (query >= scan.queries || !row_counts(scan, row)) continue;
        const QueryNumbers numbers = scan.query_numbers[query];
        if (!(row_test(scan.row_numbers[row], numbers, sum) < numbers.theta)) keep(scan, row, query);
      }
    }
  }
}

// Where 16 bytes of a row of 64 lie in shared memory: eight rows of the same chunk are in different banks.
TRAWL_DEVICE int swizzled(int row, int chunk) { return row * 64 + ((chunk ^ (row >> 1 & 3)) << 4); }

// A tile of kTileRows rows and kTileQueries queries, on the matrix units. Blocks with the same rows follow each other, so that all
// but the first find the rows in the L2 cache.
template <int kTileQueries, bool kSample>
TRAWL_DEVICE void scan_many(const ScanArguments& scan) {
  constexpr int kWarpQueries = 64, kWarpsAcross = kTileQueries / kWarpQueries, kWarpsDown = kThreads / 32 / kWarpsAcross;
  constexpr int kWarpRows = kTileRows / kWarpsDown, kDown = kWarpRows / 16, kAcross = kWarpQueries / 8;
  constexpr int kStageBytes = 64 * (kTileRows + kTileQueries);
  const uint32_t across = (scan.queries + kTileQueries - 1) / kTileQueries;
  const uint32_t tile = block_index() / across;
  const uint32_t first_query = block_index() % across * kTileQueries;
  const uint32_t first_row = (scan.first_tile + tile * scan.tile_stride) * kTileRows;
  if (!tile_counts(scan, first_row)) return;
  uint8_t* const shared = shared_memory();
  auto* row_numbers = reinterpret_cast<RowNumbers*>(shared + kStages * kStageBytes);
  auto* query_numbers = reinterpret_cast<QueryNumbers*>(row_numbers + kTileRows);
  const auto thread = static_cast<int>(thread_index());
  const int8_t* const rows = scan.codes_i8 + static_cast<int64_t>(first_row) * scan.padded;
  const int8_t* const queries = scan.digits_i8 + static_cast<int64_t>(first_query) * scan.padded;
  const auto steps = static_cast<int>(scan.padded / 64);
  const auto load = [&](int step) {
    uint8_t* const to = shared + step % kStages * kStageBytes;
#pragma unroll
    for (int i = 0; i < kTileRows * 4 / kThreads; ++i) {
      const int id = i * kThreads + thread, row = id / 4, chunk = id % 4;
      copy_async(to + swizzled(row, chunk), rows + row * scan.padded + step * 64 + chunk * 16);
    }
#pragma unroll
    for (int i = 0; i < kTileQueries * 4 / kThreads; ++i) {
      const int id = i * kThreads + thread, query = id / 4, chunk = id % 4;
      copy_async(to + kTileRows * 64 + swizzled(query, chunk), queries + query * scan.padded + step * 64 + chunk * 16);
    }
  };

  const int warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / kWarpsAcross * kWarpRows, warp_query = warp % kWarpsAcross * kWarpQueries;
  int sums[kDown][kAcross][4];
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
    }
  }
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) load(step);
    commit_copies();
  }
  for (int i = thread; i < kTileRows; i += kThreads) row_numbers[i] = scan.row_numbers[first_row + i];
  for (int i = thread; i < kTileQueries; i += kThreads) query_numbers[i] = scan.query_numbers[first_query + i];
  // One thread decides for all, because the count changes meanwhile.
  auto* is_full = reinterpret_cast<uint32_t*>(query_numbers + kTileQueries);
  if (!kSample && thread == 0) *is_full = read_count(scan.count) > scan.capacity;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    sync_threads();
    if (!kSample && step == 0 && *is_full != 0) {  // the caller scans these rows again in smaller parts
      wait_copies<0>();
      return;
    }
    if (step + kStages - 1 < steps) load(step + kStages - 1);
    commit_copies();
    const uint8_t* const row_codes = shared + step % kStages * kStageBytes;
    const uint8_t* const query_digits = row_codes + kTileRows * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t a[kDown][4], b[kAcross / 2][4];
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        load_matrices(a[i], row_codes + swizzled(warp_row + i * 16 + lane % 16, half * 2 + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j) {
        load_matrices(b[j], query_digits + swizzled(warp_query + j * 16 + lane % 8 + lane / 16 * 8, half * 2 + lane / 8 % 2));
      }
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) multiply_add(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  // sums[i][j]: rows lane / 4 and lane / 4 + 8 of 16, queries 2 * (lane % 4) and the next of 8.
  uint32_t counted = 0;  // bit 2 * i + e: the row counts
  RowNumbers mine[kDown * 2];
#pragma unroll
  for (int r = 0; r < kDown * 2; ++r) {
    const int row = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;
    mine[r] = row_numbers[row];
    counted |= row_counts(scan, first_row + row) ? 1u << r : 0;
  }
#pragma unroll
  for (int j = 0; j < kAcross; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int in_tile = warp_query + j * 8 + lane % 4 * 2 + e;
      const uint32_t query = first_query + in_tile;
      const QueryNumbers numbers = query_numbers[in_tile];
      unsigned long long best = 0;
      uint32_t kept = 0;
#pragma unroll
      for (int r = 0; r < kDown * 2; ++r) {
        const uint32_t row = first_row + warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;
        const float v = row_test(mine[r], numbers, sums[r / 2][j][r % 2 * 2 + e]);
        if (kSample) {
          if ((counted >> r & 1) != 0) best = larger(best, maximum_key(v, row));
          if (r % 4 == 3) {  // the last of kGroupRows rows
#pragma unroll 1
            for (int mask = 4; mask < 32; mask *= 2) best = larger(best, shuffle_xor(best, mask));
            if (lane < 4 && query < scan.queries && best != 0) {
              const uint32_t group = tile * (kTileRows / kGroupRows) + (warp_row + r / 2 * 16) / kGroupRows;
              raise(scan.maxima + static_cast<int64_t>(query) * scan.groups + group % scan.groups, best);
            }
            best = 0;
          }
        } else {
          kept |= v < numbers.theta ? 0 : 1u << r;
        }
      }
      if (!kSample && query < scan.queries) {
        kept &= counted;
#pragma unroll 1
        for (uint32_t r = 0; kept >> r != 0; ++r) {
          if ((kept >> r & 1) != 0) keep(scan, first_row + warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4, query);
        }
      }
    }
  }
}

}  // namespace trawl::cuda

using trawl::cuda::ScanArguments;

TRAWL_KERNEL(4) trawl_hits_few_1(const ScanArguments scan) { trawl::cuda::scan_few<1>(scan); }
TRAWL_KERNEL(4) trawl_hits_few_4(const ScanArguments scan) { trawl::cuda::scan_few<4>(scan); }
TRAWL_KERNEL(4) trawl_hits_few_8(const ScanArguments scan) { trawl::cuda::scan_few<8>(scan); }
TRAWL_KERNEL(3) trawl_hits_narrow(const ScanArguments scan) { trawl::cuda::scan_many<64, false>(scan); }
TRAWL_KERNEL(3) trawl_sample_narrow(const ScanArguments scan) { trawl::cuda::scan_many<64, true>(scan); }
TRAWL_KERNEL(2) trawl_hits_wide(const ScanArguments scan) { trawl::cuda::scan_many<128, false>(scan); }
TRAWL_KERNEL(2) trawl_sample_wide(const ScanArguments scan) { trawl::cuda::scan_many<128, true>(scan); }

// The float64 sums of the kept pairs; the bound of a pair covers any order of summation. One warp a pair.
TRAWL_KERNEL(4) trawl_dots(const ScanArguments scan) {
  using namespace trawl::cuda;
  const uint32_t count = read_count(scan.count) < scan.capacity ? read_count(scan.count) : scan.capacity;
  const uint32_t warp = (block_index() * kThreads + thread_index()) / 32, lane = thread_index() % 32;
  for (uint32_t i = warp; i < count; i += block_count() * (kThreads / 32)) {
    const int8_t* codes = scan.codes_i8 + static_cast<int64_t>(scan.hits[i].row) * scan.padded;
    const double* query = scan.rotated_f64 + static_cast<int64_t>(scan.hits[i].query) * scan.padded;
    double sum = 0;
    for (int64_t j = lane * 2; j < scan.padded; j += 64) {
      sum += query[j] * static_cast<double>(codes[j]);
      sum += query[j + 1] * static_cast<double>(codes[j + 1]);
    }
    for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane == 0) scan.hits[i].dot_f64 = sum;
  }
}
