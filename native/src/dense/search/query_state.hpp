// The state of one query during the scan, shared by the threads: the threshold, the lower bounds that set it, the candidates.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "dense/codes/rounding.hpp"
#include "trawl/search.hpp"

namespace trawl {

// A row that the prefilter kept. It is refined after the prefilter's pass, unless theta has risen above `value`, the v of its row
// test.
struct Deferred {
  float value;
  int64_t row;  // number in the shard
};

struct Candidate {
  double lower_f64, upper_f64;  // bounds of the row's score
  int64_t row;                  // global number
};

// On cache lines of its own, because threads change the states of different queries.
class alignas(64) QueryState {
 public:
  void begin(int64_t k, int64_t capacity, int64_t limit) {
    k_ = k;
    limit_ = std::max<int64_t>(limit, 1);
    capacity_ = std::min(std::max<int64_t>(capacity, 1), limit_);
  }

  // tau: a lower bound of the k-th best score. It only rises: from -inf, until k rows were seen, to +inf after fall_back_to_full_scan(),
  // when no further row matters. Relaxed order is enough, because an old value is a valid bound, too.
  double tau() const { return tau_.load(std::memory_order_relaxed); }

  // Adds a kept row with lower <= score <= upper. A NaN bound keeps the row and does not change tau.
  void add_hit(int64_t row, double lower, double upper) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (needs_full_scan_ || upper < tau()) return;
    ++survivors_;
    if (!std::isnan(lower)) add_lower(lower);
    candidates_.push_back({lower, upper, row});
    if (static_cast<int64_t>(candidates_.size()) >= capacity_) make_room();
  }

  // Raises tau by the exact score of a row, which does not become a candidate.
  void update_threshold(double score) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!needs_full_scan_) add_lower(score);
  }

  // Defers rows until after the prefilter's pass, when tau is higher, and returns how many: `limit` rows at most can be deferred.
  int64_t defer(const Deferred* rows, int64_t count, int64_t limit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t taken = std::min(count, std::max<int64_t>(limit - static_cast<int64_t>(deferred_.size()), 0));
    deferred_.insert(deferred_.end(), rows, rows + taken);
    beyond_limit_ += count - taken;
    return taken;
  }
  // Only one thread may call these.
  std::vector<Deferred>& deferred() { return deferred_; }
  std::vector<Deferred> take_deferred() {
    beyond_limit_ = 0;
    return std::exchange(deferred_, {});
  }
  int64_t beyond_limit() const { return beyond_limit_; }  // rows that defer() did not take, since take_deferred()
  void count_refined(int64_t rows) { refined_ += rows; }
  int64_t refined() const { return refined_; }

  // For one thread, after the scan.
  bool needs_full_scan() const { return needs_full_scan_; }
  void fall_back_to_full_scan() {
    needs_full_scan_ = true;
    candidates_ = {};
    lower_ = {};
    deferred_ = {};
    tau_.store(kInfinity, std::memory_order_relaxed);
  }
  std::vector<Candidate>& candidates() { return candidates_; }
  int64_t survivors() const { return survivors_; }
  int64_t growths() const { return growths_; }

 private:
  void add_lower(double lower) {
    if (static_cast<int64_t>(lower_.size()) < k_) {
      lower_.push_back(lower);
      std::push_heap(lower_.begin(), lower_.end(), std::greater<double>());
    } else if (lower > lower_.front()) {
      std::pop_heap(lower_.begin(), lower_.end(), std::greater<double>());
      lower_.back() = lower;
      std::push_heap(lower_.begin(), lower_.end(), std::greater<double>());
    } else {
      return;
    }
    if (static_cast<int64_t>(lower_.size()) == k_) tau_.store(lower_.front(), std::memory_order_relaxed);
  }

  // Drops candidates below tau. Then doubles the capacity if less than half of it is free, or falls back to the full scan at the limit.
  void make_room() {
    const double threshold = tau();
    candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.upper_f64 < threshold; }),
                      candidates_.end());
    const auto left = static_cast<int64_t>(candidates_.size());
    if (left >= limit_) return fall_back_to_full_scan();
    if (left > capacity_ / 2) {
      capacity_ = std::min(2 * capacity_, limit_);
      ++growths_;
    }
  }

  std::atomic<double> tau_{-kInfinity};
  std::mutex mutex_;
  int64_t k_ = 0, capacity_ = 0, limit_ = 0;
  int64_t survivors_ = 0, growths_ = 0;
  int64_t refined_ = 0;
  std::vector<Deferred> deferred_;
  int64_t beyond_limit_ = 0;
  bool needs_full_scan_ = false;
  std::vector<double> lower_;  // the k largest lower bounds, smallest in front
  std::vector<Candidate> candidates_;
};

}  // namespace trawl
