#include "dense/kernels/kernel_choice.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "base/aligned_buffer.hpp"

namespace trawl {

namespace {

constexpr int kPasses = 3;
constexpr int64_t kNarrowBytes = 320, kWideBytes = 768;  // a usual prefilter, and the codes of a usual encoder

}  // namespace

double scan_seconds(const Kernels& kernels, int64_t queries, int64_t padded) {
  const int64_t groups = (queries + kGroupQueries - 1) / kGroupQueries;
  AlignedBuffer<int8_t> codes(kTimedRows * padded), lane_order(groups * kGroupQueries * padded);
  uint32_t state = 1;
  for (auto* bytes : {&codes, &lane_order}) {
    for (size_t i = 0; i < bytes->size(); ++i) {
      state = state * 1664525u + 1013904223u;
      (*bytes)[i] = static_cast<int8_t>(static_cast<int>(state >> 24) % 255 - 127);
    }
  }
  AlignedBuffer<float> zero(std::max<int64_t>(kTimedRows, groups * kGroupQueries));
  AlignedBuffer<int32_t> sums(kTimedRows);
  // Every pair is dropped, as nearly every pair of a search is.
  const std::vector<float> theta(groups * kGroupQueries, std::numeric_limits<float>::infinity());
  std::vector<Hit> hits(kMaxHits);
  double best = 0;
  const int64_t at_once = rows_at_once(kernels, padded);
  const ScanSession session(kernels);
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t row = 0; row < kTimedRows; row += at_once) {
      CodeRows view = {
          .codes_i8 = codes.data() + row * padded,
          .padded = padded,
          .rows = static_cast<int>(std::min(at_once, kTimedRows - row)),
          .scale_f32 = zero.data() + row,
          .residual_f32 = zero.data() + row,
          .test_norm_f32 = zero.data() + row,
          .bias_f32 = zero.data() + row,
          .code_sum_i32 = sums.data() + row,
          .first_pass = true,
      };
      for (int64_t group = 0; group < groups; group += kernels.groups_at_once) {
        const auto here = static_cast<int>(std::min<int64_t>(kernels.groups_at_once, groups - group));
        const int64_t query = group * kGroupQueries;
        const QueryTest test = {zero.data() + query, zero.data() + query, zero.data() + query, theta.data() + query};
        kernels.scan_groups(view, lane_order.data() + query * padded, here, test, hits.data());
        view.first_pass = false;
      }
    }
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = pass == 0 ? taken : std::min(best, taken);
  }
  return best;
}

KernelChoice time_kernels(const Kernels& small_batch, const Kernels& large_batch) {
  const auto from = [&](int64_t padded) {
    return faster_from(
        kTimedQueries, [&](bool is_large, int64_t queries) { return scan_seconds(is_large ? large_batch : small_batch, queries, padded); },
        kAmxFrom);
  };
  return {&small_batch, &large_batch, from(kNarrowBytes), from(kWideBytes)};
}

}  // namespace trawl
