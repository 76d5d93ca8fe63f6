// Iterates over the postings of one term of one shard, block by block, in row order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lexical/decoded_blocks.hpp"
#include "lexical/lexical_file.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/similarity.hpp"

namespace trawl::lexical {

inline constexpr uint32_t kNoRow = 0xFFFFFFFF;

class PostingCursor {
 public:
  // `weight` and `inverse` determine the scores (similarity.hpp). File, norms and blocks must outlive the cursor.
  PostingCursor(const LexicalFile& file, const TermPostings& term, float weight, const InverseNorms& inverse, DecodedBlocks& blocks);

  // An upper bound of all postings' scores, in float32. For a list of one block it is the largest score.
  float bound() const { return bound_; }
  uint32_t count() const { return count_; }
  uint64_t decoded() const { return postings_decoded_; }
  // All postings if they are one block, else null. Valid until another cursor decodes a block.
  const DecodedBlock* all_postings() {
    if (blocks_ != 1) return nullptr;
    score_block();
    return decoded_.get();
  }

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
      const uint32_t* const rows = decoded_->rows;
      uint32_t to = block_count_;
      if (last_row() >= end) {
        to = at_;
        while (rows[to] < end) to++;
      }
      if (to > at_) visit(rows + at_, decoded_->scores + at_, to - at_);
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
      const uint32_t* const rows = decoded_->rows;
      const uint32_t* const from = std::lower_bound(rows, rows + block_count_, begin);
      const uint32_t* const to = std::lower_bound(from, rows + block_count_, end);
      if (to > from) visit(from, static_cast<uint32_t>(to - from));
      if (last_row() >= end) return;
      next_block();
    }
  }

  // The score of a row, 0 if the list has no posting for it. `row` must not decrease between calls.
  float score_of(uint32_t row);
  // Adds the score of each row that the list has to its sum. Rows rise and must not decrease between calls.
  void add_scores(const uint32_t* rows, size_t count, double* sums);
  // Whether the list has the row. `row` must not decrease between calls of has() and score_of().
  bool has(uint32_t row);

  // Called when another cursor takes this one's block.
  void lose_block() {
    decoded_.lose();
    is_decoded_ = false;
    is_scored_ = false;
  }

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
  void skip_to(uint32_t row);  // to the first block that ends at or after the row
  bool find(uint32_t row);     // whether the list has the row; if so, sets at_ to its posting
  // Whether a list of one block, whose last row is at least `begin`, has a row in [begin, end).
  bool has_row_in(uint32_t begin, uint32_t end) {
    if (next_row_ < begin) {
      if (!is_decoded_) decode();
      pass_rows_below(begin);
      next_row_ = decoded_->rows[at_];
    }
    return next_row_ < end;
  }
  void pass_rows_below(uint32_t row) {
    const uint32_t* const rows = decoded_->rows;
    while (at_ + 8 < block_count_ && rows[at_ + 8] <= row) at_ += 8;
    while (at_ < block_count_ && rows[at_] < row) at_++;
  }
  void decode();       // decodes rows and term frequencies of the current block
  void score_block();  // computes the scores of the current block

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
  BlockHead head_ = {};         // head of the current block, in a list of several blocks
  int64_t previous_row_ = -1;   // last row of the block before the current one
  uint32_t only_last_row_ = 0;  // in a list of one block
  uint32_t only_tf_ = 0;        // in a list of one posting
  uint32_t next_row_ = 0;       // in a list of one block: its first row from the last `begin` on
  bool is_decoded_ = false;
  bool is_scored_ = false;
  uint32_t block_count_ = 0;
  uint32_t at_ = 0;              // position in the block: the next row is not before it
  uint32_t blocks_counted_ = 0;  // blocks before this one are in postings_decoded_
  uint64_t postings_decoded_ = 0;
  HeldBlock decoded_;  // of the current block, if is_decoded_
};
// A query of 100,000 words has as many cursors in every thread.
static_assert(sizeof(PostingCursor) <= 160, "the state of a term must stay small");

}  // namespace trawl::lexical
