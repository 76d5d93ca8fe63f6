// Chooses between two ways to do the same work, one for small batches and one for large ones, by timing them.
#pragma once
#include <cstdint>

namespace trawl {

// Times closer than this count as equal: a measurement of milliseconds is not more exact.
constexpr double kTimeNoise = 0.05;
constexpr int64_t kNever = INT64_MAX;

// The smallest of the ascending `counts` from which on the way for large batches is faster; kNever if it is slower even at the last.
// seconds_of(is large, count). Of close times, the large way wins from expected_from on.
template <typename Counts, typename SecondsOf>
int64_t faster_from(const Counts& counts, const SecondsOf& seconds_of, int64_t expected_from) {
  int64_t from = kNever;
  for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
    const double small = seconds_of(false, *count), large = seconds_of(true, *count);
    const bool close = large < small * (1 + kTimeNoise) && small < large * (1 + kTimeNoise);
    if (close ? *count < expected_from : large > small) break;
    from = *count;
  }
  return from;
}

}  // namespace trawl
