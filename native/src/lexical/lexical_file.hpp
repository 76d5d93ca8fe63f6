// Reads a `.bm25` file (lexical_format.hpp). Checks everything that it reads, so a damaged file causes an error, never a wrong
// answer.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.hpp"
#include "lexical/lexical_format.hpp"
#include "trawl/analyser.hpp"

namespace trawl::lexical {

// The place of a term's postings.
struct TermPostings {
  uint32_t count = 0;  // document frequency in the shard; 0 if the shard lacks the term
  uint32_t row = 0;    // row of the only posting, if count is 1
  uint32_t tf = 0;
  const uint8_t* list = nullptr;  // the posting list, if count is above 1
  uint64_t list_bytes = 0;
};

class LexicalFile {
 public:
  // Checks magic, version, sizes and the header's checksum. verify_lexical() checks the sections' checksums. Throws kReadFailed,
  // kBadFile.
  static std::shared_ptr<const LexicalFile> open(const std::string& path);

  const LexicalHeader& header() const { return header_; }
  uint32_t rows() const { return static_cast<uint32_t>(header_.rows); }
  const uint8_t* length_codes() const { return length_codes_; }
  int64_t bytes() const { return file_->bytes(); }
  void require_unchanged() const { file_->require_unchanged(); }
  const std::string& path() const { return path_; }

  // Throws kBadFile if the dictionary is damaged.
  TermPostings find(std::string_view term) const;

  // Calls visit(term, postings) for all terms in order, until visit returns false. Throws kBadFile.
  template <class Visit>
  void for_each_term(Visit&& visit) const {
    for (uint64_t block = 0; block < term_blocks_; block++) {
      if (!read_block(block, visit)) return;
    }
  }

  const uint8_t* data() const { return file_->data(); }

  [[noreturn]] void damaged(const std::string& what) const;

 private:
  LexicalFile() = default;
  TermBlockPlace place(uint64_t block) const;
  std::string_view first_term(uint64_t block) const;
  uint64_t read_number(const uint8_t*& at) const {
    if (at < terms_ + header_.terms_section.bytes && *at < 0x80) return *at++;
    return read_long_number(at);
  }
  uint64_t read_long_number(const uint8_t*& at) const;
  void skip_number(const uint8_t*& at) const {
    const uint8_t* const end = terms_ + header_.terms_section.bytes;
    while (at < end && *at >= 0x80) at++;
    if (at >= end) damaged("its dictionary is truncated");
    at++;
  }

  // The numbers at the start of a term in the dictionary.
  struct TermSizes {
    uint64_t shared;  // bytes that the term before it begins with, too
    uint64_t more;    // bytes that follow
  };
  TermSizes read_sizes(const uint8_t*& at, uint64_t previous_bytes) const {
    const uint8_t* const end = terms_ + header_.terms_section.bytes;
    if (at >= end) damaged("its dictionary is truncated");
    const uint8_t both = *at++;
    TermSizes sizes = {static_cast<uint64_t>(both >> 4), static_cast<uint64_t>(both & kHalfByte)};
    if (sizes.shared == kHalfByte) sizes.shared += read_number(at);
    if (sizes.more == kHalfByte) sizes.more += read_number(at);
    if (sizes.shared > previous_bytes || sizes.more > static_cast<uint64_t>(end - at)) damaged("its dictionary is truncated");
    return sizes;
  }

  // Calls visit(term, postings) for the terms of a block. Stops and returns false if visit returns false.
  template <class Visit>
  bool read_block(uint64_t block, Visit&& visit) const {
    const TermBlockPlace begin = place(block);
    const uint64_t count = std::min<uint64_t>(kTermsPerBlock, header_.terms - block * kTermsPerBlock);
    const uint8_t* at = terms_ + begin.terms;
    uint64_t list = begin.lists;
    std::string term;
    for (uint64_t i = 0; i < count; i++) {
      const TermSizes sizes = read_sizes(at, term.size());
      term.resize(sizes.shared);
      term.append(reinterpret_cast<const char*>(at), sizes.more);
      at += sizes.more;
      if (!visit(term, read_postings(at, list))) return false;
    }
    return true;
  }
  TermPostings read_postings(const uint8_t*& at, uint64_t& list) const;
  void skip_postings(const uint8_t*& at, uint64_t& list) const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  LexicalHeader header_;
  const uint8_t* lists_ = nullptr;
  const uint8_t* length_codes_ = nullptr;
  const uint8_t* terms_ = nullptr;
  const uint8_t* term_index_ = nullptr;
  uint64_t term_blocks_ = 0;
};

}  // namespace trawl::lexical
