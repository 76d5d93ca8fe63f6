// Inverts the texts of one part of a shard in memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lexical/posting_block.hpp"
#include "trawl/analyser.hpp"

namespace trawl::lexical {

// Numbers terms from 0 in the order of their first appearance.
class Vocabulary {
 public:
  Vocabulary();
  uint32_t number_of(std::string_view term);  // assigns the next number to a new term
  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }
  std::string_view term(uint32_t number) const {
    const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(bytes_).substr(begin, ends_[number] - begin);
  }

 private:
  struct Slot {
    uint64_t key;
    uint32_t bytes;   // of the term
    uint32_t number;  // of the term + 1, 0 if the slot is empty
  };
  static uint64_t key_of(std::string_view term);
  static uint64_t mix(uint64_t key);
  static size_t place_of(uint64_t key, uint32_t bytes) { return mix(mix(key) + bytes); }
  void grow();
  std::string bytes_;
  std::vector<uint64_t> ends_;
  std::vector<Slot> slots_;  // the size is a power of two
};

struct Inversion {
  std::vector<uint8_t> length_codes;  // one per row
  uint64_t tokens = 0;
  std::vector<uint8_t> run;  // the sorted run, see append_run
};

// Inverts `count` texts whose rows begin at `first_row`. A run contains, for each term in byte order: varint length, the bytes,
// varint df, then for each posting varint row - previous row - 1 (the previous row of the first is -1) and varint tf - 1.
Inversion invert(Analyser analyser, const char* texts, const uint64_t* ends, size_t count, uint32_t first_row);

}  // namespace trawl::lexical
