// Memory for the decoded blocks of the cursors of a search. A query may have 100,000 words, and each has a cursor, but at most
// DecodedBlocks::kMost cursors hold a decoded block at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lexical/posting_block.hpp"

namespace trawl::lexical {

class PostingCursor;

struct DecodedBlock {
  uint32_t rows[kBlockPostings];
  uint32_t tfs[kBlockPostings];
  float scores[kBlockPostings];
  PostingCursor* holder;    // null if the block is free
  DecodedBlock* next_free;  // of a free block
};

// Must outlive its cursors. For one thread.
class DecodedBlocks {
 public:
  static constexpr size_t kMost = 4096;  // 6 MB

  explicit DecodedBlocks(size_t most = kMost) : most_(most) {}

  // Returns a free block. If there is none, another cursor loses its block, and decodes again when it needs it.
  DecodedBlock* take(PostingCursor& holder);
  void give_back(DecodedBlock* block) {
    block->holder = nullptr;
    block->next_free = free_;
    free_ = block;
  }
  size_t allocated() const { return all_.size(); }

 private:
  const size_t most_;
  std::vector<std::unique_ptr<DecodedBlock>> all_;
  DecodedBlock* free_ = nullptr;
  size_t next_to_lose_ = 0;  // cursors lose their blocks in round-robin order
};

// The block of a cursor, or none. Gives it back when it ends.
class HeldBlock {
 public:
  explicit HeldBlock(DecodedBlocks& from) : from_(from) {}
  ~HeldBlock() {
    if (block_ != nullptr) from_.give_back(block_);
  }
  HeldBlock(const HeldBlock&) = delete;
  HeldBlock& operator=(const HeldBlock&) = delete;

  void take(PostingCursor& holder) {
    if (block_ == nullptr) block_ = from_.take(holder);
  }
  void lose() { block_ = nullptr; }
  DecodedBlock* get() const { return block_; }
  DecodedBlock* operator->() const { return block_; }

 private:
  DecodedBlocks& from_;
  DecodedBlock* block_ = nullptr;
};

}  // namespace trawl::lexical
