#include "lexical/decoded_blocks.hpp"

#include "lexical/posting_cursor.hpp"

namespace trawl::lexical {

DecodedBlock* DecodedBlocks::take(PostingCursor& holder) {
  DecodedBlock* block = free_;
  if (block != nullptr) {
    free_ = block->next_free;
  } else if (all_.size() < most_) {
    all_.push_back(std::make_unique<DecodedBlock>());
    block = all_.back().get();
  } else {
    block = all_[next_to_lose_].get();
    next_to_lose_ = (next_to_lose_ + 1) % most_;
    block->holder->lose_block();
  }
  block->holder = &holder;
  return block;
}

}  // namespace trawl::lexical
