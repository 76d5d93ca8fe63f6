#include "lexical/window_sums.hpp"

#include <algorithm>

#include "base/x86_features.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trawl::lexical {
namespace {

// Returns which of eight groups from `first` on are touched, one byte each, and makes them untouched.
inline uint64_t take_touched(WindowSums& window, uint32_t first) {
  uint64_t touched;
  std::memcpy(&touched, &window.touched[first], sizeof touched);
  if (touched != 0) std::memset(&window.touched[first], 0, sizeof touched);
  return touched;
}

inline uint32_t first_row(uint32_t first_group, uint64_t touched) {
  return (first_group + static_cast<uint32_t>(__builtin_ctzll(touched)) / 8) * kGroupRows;
}

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512vl"))) void collect_avx512(WindowSums& window, uint32_t begin, uint32_t count, double too_small,
                                                                Candidates& candidates) {
  const __m512i limit = _mm512_set1_epi64(bits_of_sum(too_small));
  const __m512d none = _mm512_set1_pd(kNoSum);
  const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  uint32_t* rows = candidates.rows.data();
  double* sums = candidates.sums.data();
  double* const all = window.sums.data();
  const uint32_t groups = (count + kGroupRows - 1) / kGroupRows;
  for (uint32_t first = 0; first < groups; first += 8) {
    for (uint64_t touched = take_touched(window, first); touched != 0; touched &= touched - 1) {
      const uint32_t at = first_row(first, touched);
      const __m512d group = _mm512_loadu_pd(all + at);
      const __mmask8 above = _mm512_cmpgt_epi64_mask(_mm512_castpd_si512(group), limit);
      _mm512_storeu_pd(all + at, none);
      // Stores whole vectors. The next candidates overwrite the values after the last one.
      _mm512_storeu_pd(sums, _mm512_maskz_compress_pd(above, group));
      const __m256i group_rows = _mm256_add_epi32(eight, _mm256_set1_epi32(static_cast<int>(begin + at)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows), _mm256_maskz_compress_epi32(above, group_rows));
      const auto found = static_cast<uint32_t>(__builtin_popcount(above));
      sums += found;
      rows += found;
    }
  }
  candidates.count = static_cast<size_t>(rows - candidates.rows.data());
}

#endif

using Collect = void (*)(WindowSums&, uint32_t, uint32_t, double, Candidates&);

Collect choose() {
#if defined(__x86_64__)
  if (missing_avx512(X86()).empty()) return collect_avx512;
#endif
  return collect_serial;
}

}  // namespace

void collect_serial(WindowSums& window, uint32_t begin, uint32_t count, double too_small, Candidates& candidates) {
  const int64_t limit = bits_of_sum(too_small);
  const uint32_t groups = (count + kGroupRows - 1) / kGroupRows;
  size_t found = 0;
  for (uint32_t first = 0; first < groups; first += 8) {
    for (uint64_t touched = take_touched(window, first); touched != 0; touched &= touched - 1) {
      const uint32_t at = first_row(first, touched);
      double* const sums = &window.sums[at];
      for (uint32_t i = 0; i < kGroupRows; i++) {
        const double sum = sums[i];
        candidates.sums[found] = sum;
        candidates.rows[found] = begin + at + i;
        found += bits_of_sum(sum) > limit ? 1 : 0;  // without a branch, which would be mispredicted
      }
      std::fill_n(sums, kGroupRows, kNoSum);
    }
  }
  candidates.count = found;
}

void collect(WindowSums& window, uint32_t begin, uint32_t count, double too_small, Candidates& candidates) {
  static const Collect chosen = choose();
  chosen(window, begin, count, too_small, candidates);
}

}  // namespace trawl::lexical
