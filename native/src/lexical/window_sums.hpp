// Sums of scores of the rows of a window.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace trawl::lexical {

// Rows of a window: 16,384 float64 sums take 128 KiB, which fit into a second-level cache.
inline constexpr uint32_t kWindowRows = 1 << 14;
// Rows of a group. A group is the unit that collect() visits.
inline constexpr uint32_t kGroupRows = 8;
// The sum of a row without a score: adding a score gives the score, and 0 gives +0.
inline constexpr double kNoSum = -0.0;

// Sums of at least 0 have the order of their bits as a signed number; kNoSum is the smallest number.
inline int64_t bits_of_sum(double sum) {
  int64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  return bits;
}

inline bool is_no_sum(double sum) { return bits_of_sum(sum) < 0; }

// Rows that may be among the best, rows rising.
struct Candidates {
  size_t count = 0;
  std::vector<uint32_t> rows = std::vector<uint32_t>(kWindowRows + kGroupRows);
  std::vector<double> sums = std::vector<double>(kWindowRows + kGroupRows);

  // Keeps those whose sum is above `too_small`.
  void keep_above(double too_small) {
    const int64_t bits = bits_of_sum(too_small);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
      const double sum = sums[i];
      rows[kept] = rows[i];
      sums[kept] = sum;
      kept += bits_of_sum(sum) > bits ? 1 : 0;  // without a branch, which would be mispredicted
    }
    count = kept;
  }
};

// Two float64 sums of the same `count` scores differ at most by this factor, in whatever order the scores are added.
inline double sum_factor(size_t count) { return 1 + static_cast<double>(count) * 0x1p-51; }

struct WindowSums {
  std::vector<double> sums = std::vector<double>(kWindowRows, kNoSum);
  std::vector<uint8_t> touched = std::vector<uint8_t>(kWindowRows / kGroupRows);  // 1 for a group with a sum
};

// Moves the rows of the first `count` of the window whose sum is above `too_small` to the candidates, and clears the sums. The
// window begins at row `begin`.
void collect(WindowSums& window, uint32_t begin, uint32_t count, double too_small, Candidates& candidates);
// The same for any processor, one row at a time.
void collect_serial(WindowSums& window, uint32_t begin, uint32_t count, double too_small, Candidates& candidates);

}  // namespace trawl::lexical
