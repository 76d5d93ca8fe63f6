// Iterates over the postings of one term of one shard, block by block, in row order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lexical_file.hpp"
#include "posting_block.hpp"
#include "similarity.hpp"

namespace trawl::lexical {

inline constexpr uint32_t kNoRow = 0xFFFFFFFF;

class PostingCursor {
 public:
  // `weight` and `inverse` determine the scores (similarity.hpp). The file and the norms must outlive the cursor.
  PostingCursor(const LexicalFile& file, const TermPostings& term, float weight, const InverseNorms& inverse);

  // An upper bound of all postings' scores, in float32. For a list of one block it is the largest score.
  float bound() const { return bound_; }
  uint32_t count() const { return count_; }
  uint64_t decoded() const { return decoded_; }
  // The scores of all postings if they are one block, else null.
  const float* all_scores() const { return blocks_ == 1 ? scores_ : nullptr; }
  uint32_t row_of_posting(uint32_t i) const { return rows_[i]; }  // while all_scores() is not null

  // An upper bound of the scores in [begin, end). Negative only if the list has no row there; in a list of several blocks it may
  // be positive although the list has none. `begin` must not decrease between calls.
  float bound_in(uint32_t begin, uint32_t end);

  // False only if the list has no row in [begin, end); in a list of several blocks it may be true although the list has none.
  // `begin` must not decrease between calls.
  bool may_have_rows_in(uint32_t begin, uint32_t end);

  // Decodes blocks and calls visit(rows, scores, count) for the postings in [begin, end), block by block.
  template <class Visit>
  void for_each_in(uint32_t begin, uint32_t end, Visit&& visit) {
    skip_to(begin);
    while (block_ < blocks_ && first_possible_row() < end) {
      score_block();
      pass_rows_below(begin);
      uint32_t to = block_count_;
      if (last_row() >= end) {
        to = at_;
        while (rows_[to] < end) to++;
      }
      if (to > at_) visit(rows_ + at_, scores_ + at_, to - at_);
      if (last_row() >= end) return;
      next_block();
    }
  }

  // The same without scores: calls visit(rows, count).
  template <class Visit>
  void for_each_row_in(uint32_t begin, uint32_t end, Visit&& visit) {
    skip_to(begin);
    while (block_ < blocks_ && first_possible_row() < end) {
      if (!is_decoded_) decode();
      const uint32_t* const from = std::lower_bound(rows_, rows_ + block_count_, begin);
      const uint32_t* const to = std::lower_bound(from, static_cast<const uint32_t*>(rows_ + block_count_), end);
      if (to > from) visit(from, static_cast<uint32_t>(to - from));
      if (last_row() >= end) return;
      next_block();
    }
  }

  // The score of a row, 0 if the list has no posting for it. `row` must not decrease between calls.
  float score_of(uint32_t row);
  // Adds the score of each row to its sum. Rows rise and must not decrease between calls.
  void add_scores(const uint32_t* rows, size_t count, double* sums);
  // Whether the list has the row. `row` must not decrease between calls of has() and score_of().
  bool has(uint32_t row);

 private:
  float score(uint32_t tf, uint8_t length_code) const { return term_score(weight_, tf, inverse_[length_code]); }
  float bound_of(const BoundPairs& pairs) const;
  BlockHead head(uint32_t block) const {
    BlockHead head;
    std::memcpy(&head, heads_ + block * sizeof head, sizeof head);
    return head;
  }
  uint32_t last_row() const { return blocks_ == 1 ? only_last_row_ : head_.last_row; }
  // No posting of the current block or of later ones is below this row.
  uint32_t first_possible_row() const { return static_cast<uint32_t>(previous_row_ + 1); }
  void next_block();
  void skip_to(uint32_t row);   // to the first block that ends at or after the row
  bool find(uint32_t row);      // whether the list has the row; if so, sets at_ to its posting
  // Whether a list of one block, whose last row is at least `begin`, has a row in [begin, end).
  bool has_row_in(uint32_t begin, uint32_t end) {
    pass_rows_below(begin);
    return rows_[at_] < end;
  }
  void pass_rows_below(uint32_t row) {
    while (at_ + 8 < block_count_ && rows_[at_ + 8] <= row) at_ += 8;
    while (at_ < block_count_ && rows_[at_] < row) at_++;
  }
  void decode();                // decodes rows and term frequencies of the current block
  void score_block();           // computes the scores of the current block

  const LexicalFile& file_;
  const InverseNorms& inverse_;
  float weight_;
  float bound_ = 0;
  uint32_t count_;
  uint32_t blocks_;
  const uint8_t* heads_ = nullptr;
  const uint8_t* data_ = nullptr;  // start of the blocks
  const uint8_t* end_ = nullptr;   // end of the list

  uint32_t block_ = 0;
  BlockHead head_ = {};            // head of the current block, in a list of several blocks
  int64_t previous_row_ = -1;      // last row of the block before the current one
  uint32_t only_last_row_ = 0;
  bool is_decoded_ = false;
  bool is_scored_ = false;
  uint32_t block_count_ = 0;
  uint32_t at_ = 0;                // position in the block: the next row is not before it
  uint64_t decoded_ = 0;
  uint32_t rows_[kBlockPostings];
  uint32_t tfs_[kBlockPostings];
  float scores_[kBlockPostings];
};

}  // namespace trawl::lexical
