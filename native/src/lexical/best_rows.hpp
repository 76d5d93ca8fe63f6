// The k best rows seen so far. Larger scores come first, and of equal scores the lower row.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace trawl::lexical {

struct ScoredRow {
  float score;
  int64_t row;
};

inline bool is_better(const ScoredRow& a, const ScoredRow& b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

// Each row is a 64-bit key that is larger for a better row. The high half has the bits of the score, which is at least 0; the low
// half falls with the row. A small k uses a heap. A large k uses a buffer: when it has 2k rows, the best k stay. This takes less
// time than a heap.
class BestRows {
 public:
  // Rows lie in [first_row, first_row + 2^32).
  BestRows(int64_t k, int64_t first_row) : k_(static_cast<size_t>(k)), first_row_(first_row) {}

  // Whether k rows were offered. From then on, a row enters only if its score is above floor() or equal with a lower row.
  bool is_full() const { return is_full_; }
  // At least k of the offered rows have this score or a larger one, if there are k.
  float floor() const { return floor_; }

  void offer(float score, int64_t row) {
    score += 0.0f;  // makes -0, whose bits are large, 0
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    const uint64_t key = uint64_t{bits} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(row - first_row_));
    if (is_full_ && key <= worst_) return;
    add(key);
  }

  // Sets floor() to the k-th best score so far.
  void raise_floor() {
    if (is_full_ && keys_.size() > k_) cut();
  }

  std::vector<ScoredRow> sorted() && {
    if (is_full_) cut();
    std::sort(keys_.begin(), keys_.end(), std::greater<>());
    std::vector<ScoredRow> rows(keys_.size());
    for (size_t i = 0; i < keys_.size(); i++) {
      rows[i] = {score_of(keys_[i]), first_row_ + (0xFFFFFFFFu - static_cast<uint32_t>(keys_[i]))};
    }
    return rows;
  }

 private:
  static constexpr size_t kMaxHeap = 64;

  static float score_of(uint64_t key) {
    const auto bits = static_cast<uint32_t>(key >> 32);
    float score;
    std::memcpy(&score, &bits, sizeof score);
    return score;
  }

  void add(uint64_t key) {
    const bool is_heap = k_ <= kMaxHeap;
    if (is_full_ && is_heap) {
      std::pop_heap(keys_.begin(), keys_.end(), std::greater<>());
      keys_.back() = key;
      std::push_heap(keys_.begin(), keys_.end(), std::greater<>());
      return set_worst(keys_.front());
    }
    keys_.push_back(key);
    if (is_full_) {
      if (keys_.size() == 2 * k_) cut();
    } else if (keys_.size() == k_) {
      is_full_ = true;
      if (is_heap) std::make_heap(keys_.begin(), keys_.end(), std::greater<>());
      set_worst(is_heap ? keys_.front() : *std::min_element(keys_.begin(), keys_.end()));
    }
  }

  void cut() {
    if (keys_.size() == k_) return;
    std::nth_element(keys_.begin(), keys_.begin() + (k_ - 1), keys_.end(), std::greater<>());
    keys_.resize(k_);
    set_worst(keys_.back());
  }

  void set_worst(uint64_t key) {
    worst_ = key;
    floor_ = score_of(key);
  }

  const size_t k_;
  const int64_t first_row_;
  bool is_full_ = false;
  uint64_t worst_ = 0;  // of k rows, once it is full
  float floor_ = 0;
  std::vector<uint64_t> keys_;
};

}  // namespace trawl::lexical
