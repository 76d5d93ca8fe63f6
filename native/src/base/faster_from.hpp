// The choice of the faster one of two ways to do the same work, one of which is for little of it and the other for much.
#pragma once
#include <cstdint>

namespace trawl {

// Closer times than this are decided by what is expected: times of milliseconds are no more exact.
constexpr double kTimeNoise = 0.05;
constexpr int64_t kNever = INT64_MAX;

// The smallest of `counts`, which ascend, from which on `many` is the faster one; kNever if it is slower even with the most.
// seconds_of(many or few, count). Close times count as those of the faster one from expected_from on.
template <typename Counts, typename SecondsOf>
int64_t faster_from(const Counts& counts, const SecondsOf& seconds_of, int64_t expected_from) {
  int64_t from = kNever;
  for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
    const double few = seconds_of(false, *count), many = seconds_of(true, *count);
    const bool close = many < few * (1 + kTimeNoise) && few < many * (1 + kTimeNoise);
    if (close ? *count < expected_from : many > few) break;
    from = *count;
  }
  return from;
}

}  // namespace trawl
