#include "lexical/posting_cursor.hpp"

#include <algorithm>
#include <cmath>

namespace trawl::lexical {

PostingCursor::PostingCursor(const LexicalFile& file, const TermPostings& term, float weight, const InverseNorms& inverse,
                             DecodedBlocks& blocks)
    : file_(file),
      inverse_(inverse),
      weight_(weight),
      count_(term.count),
      blocks_((term.count + kBlockPostings - 1) / kBlockPostings),
      decoded_(blocks) {
  if (count_ == 0) return;
  if (blocks_ > 1) {
    const uint64_t head_bytes = sizeof(BoundPairs) + uint64_t{blocks_} * sizeof(BlockHead);
    if (head_bytes > term.list_bytes) file_.damaged("a posting list ends inside its block heads");
    BoundPairs pairs;
    std::memcpy(&pairs, term.list, sizeof pairs);
    bound_ = bound_of(pairs);
    heads_ = term.list + sizeof pairs;
    data_ = term.list + head_bytes;
    end_ = term.list + term.list_bytes;
    head_ = head(0);
    return;
  }
  if (count_ == 1) {
    only_last_row_ = term.row;
    only_tf_ = term.tf;
  } else {
    data_ = term.list;
    end_ = term.list + term.list_bytes;
  }
  score_block();
  only_last_row_ = decoded_->rows[block_count_ - 1];
  next_row_ = decoded_->rows[0];
  bound_ = *std::max_element(decoded_->scores, decoded_->scores + block_count_);
}

float PostingCursor::bound_of(const BoundPairs& pairs) const {
  float bound = 0;
  for (const BoundPair& pair : pairs.of) {
    bound = std::max(bound, pair.tf == kUnboundedTf ? weight_ : score(pair.tf, pair.length_code));
  }
  return bound;
}

float PostingCursor::bound_in(uint32_t begin, uint32_t end) {
  skip_to(begin);
  if (block_ == blocks_ || first_possible_row() >= end) return -1;
  if (blocks_ == 1) return has_row_in(begin, end) ? bound_ : -1;
  float bound = 0;
  int64_t before = previous_row_;
  for (uint32_t block = block_; block < blocks_ && before + 1 < static_cast<int64_t>(end); block++) {
    const BlockHead next = head(block);
    bound = std::max(bound, bound_of(next.bounds));
    if (bound >= bound_) break;
    before = next.last_row;
  }
  return std::min(bound, bound_);
}

bool PostingCursor::may_have_rows_in(uint32_t begin, uint32_t end) {
  skip_to(begin);
  if (block_ == blocks_ || first_possible_row() >= end) return false;
  return blocks_ > 1 || has_row_in(begin, end);
}

void PostingCursor::next_block() {
  previous_row_ = last_row();
  block_++;
  is_decoded_ = false;
  is_scored_ = false;
  at_ = 0;
  if (block_ < blocks_) {
    head_ = head(block_);
    if (head_.last_row <= previous_row_ || head_.last_row >= file_.rows()) file_.damaged("the rows of a posting list do not rise");
  }
}

void PostingCursor::skip_to(uint32_t row) {
  if (block_ == blocks_ || last_row() >= row) return;
  next_block();
  if (block_ == blocks_ || last_row() >= row) return;
  // Search with doubling steps, then by halving, so that a far skip reads few heads.
  uint32_t low = block_;
  uint32_t step = 1;
  while (low + step < blocks_ && head(low + step).last_row < row) {
    low += step;
    step *= 2;
  }
  uint32_t high = std::min(low + step, blocks_);
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (head(middle).last_row < row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  block_ = low;
  head_ = head(low);
  next_block();
}

void PostingCursor::decode() {
  decoded_.take(*this);
  block_count_ = block_ + 1 < blocks_ ? kBlockPostings : count_ - block_ * kBlockPostings;
  if (count_ == 1) {
    decoded_->rows[0] = only_last_row_;
    decoded_->tfs[0] = only_tf_;
    is_decoded_ = true;
    return;
  }
  const uint8_t* begin = blocks_ == 1 ? data_ : data_ + head_.offset;
  if (begin > end_) file_.damaged("a block begins past the end of its posting list");
  // Unpacking may read past the list's end, but not past the section's padding.
  if (!decode_block(begin, end_, block_count_, previous_row_, file_.rows(), decoded_->rows, decoded_->tfs)) {
    file_.damaged("a block of postings cannot be decoded");
  }
  if (blocks_ > 1 && decoded_->rows[block_count_ - 1] != head_.last_row) file_.damaged("a block's last row differs from its head");
  is_decoded_ = true;
  if (block_ < blocks_counted_) return;  // decoded before, and lost
  blocks_counted_ = block_ + 1;
  postings_decoded_ += block_count_;
}

void PostingCursor::score_block() {
  if (is_scored_) return;
  if (!is_decoded_) decode();
  const uint8_t* codes = file_.length_codes();
  const uint32_t* const rows = decoded_->rows;
  const uint32_t* const tfs = decoded_->tfs;
  float* const scores = decoded_->scores;
  float inverse[kBlockPostings];
  for (uint32_t i = 0; i < block_count_; i++) inverse[i] = inverse_[codes[rows[i]]];
  for (uint32_t i = 0; i < block_count_; i++) scores[i] = term_score(weight_, tfs[i], inverse[i]);
  is_scored_ = true;
}

bool PostingCursor::find(uint32_t row) {
  skip_to(row);
  if (block_ == blocks_ || first_possible_row() > row) return false;
  if (!is_decoded_) decode();
  pass_rows_below(row);
  return at_ < block_count_ && decoded_->rows[at_] == row;
}

void PostingCursor::add_scores(const uint32_t* rows, size_t count, double* sums) {
  const uint8_t* const codes = file_.length_codes();
  for (size_t i = 0; i < count;) {
    skip_to(rows[i]);
    if (block_ == blocks_) return;
    const uint32_t last = last_row();
    const uint32_t first = first_possible_row();
    while (i < count && rows[i] < first) i++;
    if (i == count || rows[i] > last) continue;
    if (!is_decoded_) decode();
    const uint32_t* const in_block = decoded_->rows;
    for (; i < count && rows[i] <= last; i++) {
      // A binary search without branches, which would be mispredicted. The processor overlaps the searches of several rows.
      const uint32_t row = rows[i];
      const uint32_t* at = in_block;
      for (uint32_t left = block_count_; left > 1;) {
        const uint32_t half = left / 2;
        at += -static_cast<uint32_t>(at[half - 1] < row) & half;
        left -= half;
      }
      const float posting = score(decoded_->tfs[at - in_block], codes[row]);
      sums[i] += *at == row ? posting : -0.0f;  // adding -0 changes no sum, not even kNoSum
    }
  }
}

bool PostingCursor::has(uint32_t row) { return find(row); }

float PostingCursor::score_of(uint32_t row) {
  if (!find(row)) return 0;
  return is_scored_ ? decoded_->scores[at_] : score(decoded_->tfs[at_], file_.length_codes()[row]);
}

}  // namespace trawl::lexical
