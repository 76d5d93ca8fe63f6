// The checksum of a section that may be larger than memory: checksum64 over pieces of one mebibyte. The checksum of a piece is the
// seed of the next.
#pragma once
#include <algorithm>
#include <vector>

#include "base/checksum.hpp"

namespace trawl::lexical {

class SectionChecksum {
 public:
  void add(const uint8_t* data, size_t bytes) {
    while (bytes > 0) {
      if (pending_.empty() && bytes >= kPiece) {
        sum_ = checksum64(data, kPiece, sum_);
        data += kPiece;
        bytes -= kPiece;
        continue;
      }
      const size_t taken = std::min(bytes, kPiece - pending_.size());
      pending_.insert(pending_.end(), data, data + taken);
      data += taken;
      bytes -= taken;
      if (pending_.size() == kPiece) flush();
    }
  }

  uint64_t finish() {
    if (!pending_.empty()) flush();
    return sum_;
  }

 private:
  static constexpr size_t kPiece = 1 << 20;
  void flush() {
    sum_ = checksum64(pending_.data(), pending_.size(), sum_);
    pending_.clear();
  }
  std::vector<uint8_t> pending_;
  uint64_t sum_ = 0;
};

}  // namespace trawl::lexical
