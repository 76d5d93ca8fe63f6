// The k best (score, row) pairs. Larger scores come first, and of equal scores the LOWER row. Only this class orders results.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace trawl {

struct Scored {
  double score_f64;
  int64_t row;
};

inline bool better(const Scored& a, const Scored& b) { return a.score_f64 > b.score_f64 || (a.score_f64 == b.score_f64 && a.row < b.row); }

class TopK {
 public:
  explicit TopK(int64_t k = 0) : k_(k) {}
  bool full() const { return static_cast<int64_t>(heap_.size()) >= k_; }
  const Scored& worst() const { return heap_.front(); }
  void push(const Scored& scored) {
    if (full()) {
      if (!better(scored, worst())) return;
      std::pop_heap(heap_.begin(), heap_.end(), better);
      heap_.back() = scored;
    } else {
      heap_.push_back(scored);
    }
    std::push_heap(heap_.begin(), heap_.end(), better);
  }
  std::vector<Scored> take_sorted() {
    std::sort_heap(heap_.begin(), heap_.end(), better);
    return std::move(heap_);
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Scored& scored : heap_) visit(scored);
  }
  void clear() { heap_.clear(); }

 private:
  int64_t k_;
  std::vector<Scored> heap_;
};

}  // namespace trawl
