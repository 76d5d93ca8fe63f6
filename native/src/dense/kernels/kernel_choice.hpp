// Which kernels scan the rows, by the number of queries: AMX is slower than AVX-512 VNNI with few queries, whose tiles are mostly
// padding, and faster with many.
#pragma once
#include <array>
#include <cstdint>

#include "base/faster_from.hpp"
#include "dense/kernels/kernels.hpp"

namespace trawl {

struct KernelChoice {
  const Kernels* small_batch;  // also for everything but scans
  const Kernels* large_batch;
  int64_t narrow_from, wide_from;  // queries of a large batch, for narrow and for wide rows

  // padded: bytes of a row. A prefilter has fewer than the codes, so the test of a pair is a larger part of its time.
  const Kernels& for_queries(int64_t queries, int64_t padded) const {
    return queries < (padded <= kNarrow ? narrow_from : wide_from) ? *small_batch : *large_batch;
  }

  static constexpr int64_t kNarrow = 512;
};

// What is timed: a pass of one thread over kTimedRows rows of `padded` bytes, for each of these numbers of queries.
constexpr std::array<int64_t, 6> kTimedQueries = {16, 32, 64, 96, 128, 256};
constexpr int64_t kTimedRows = 2048;
// From here on AMX was faster on the one Emerald Rapids that was measured: M dot products/s of VNNI and of AMX, one thread, were 245 and
// 1,110 with 16 queries and 294 and 1,846 with 256 over rows of 768 bytes, 663 and 2,949, and 677 and 3,795, over rows of 320.
constexpr int64_t kAmxFrom = 16;

double scan_seconds(const Kernels& kernels, int64_t queries, int64_t padded);

// Times both for both widths, about 50 ms.
KernelChoice time_kernels(const Kernels& small_batch, const Kernels& large_batch);

}  // namespace trawl
