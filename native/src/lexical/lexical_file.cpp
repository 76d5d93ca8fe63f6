#include "lexical/lexical_file.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/varint.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {

std::shared_ptr<const LexicalFile> LexicalFile::open(const std::string& path) {
  std::shared_ptr<LexicalFile> file(new LexicalFile());
  file->path_ = path;
  file->file_ = MappedFile::open(path, 0, -1);
  const uint64_t bytes = file->file_->bytes();
  LexicalHeader& header = file->header_;
  if (bytes < sizeof header) file->damaged("it has " + std::to_string(bytes) + " bytes, fewer than its header");
  std::memcpy(&header, file->file_->data(), sizeof header);
  if (std::memcmp(header.magic, kLexicalMagic, sizeof header.magic) != 0) {
    file->damaged("it is not a complete BM25 file (its first 8 bytes differ)");
  }
  if (header.version != kLexicalVersion) {
    file->damaged("its version is " + std::to_string(header.version) + ", but this program reads version " +
                  std::to_string(kLexicalVersion));
  }
  LexicalHeader unsigned_header = header;
  unsigned_header.checksum = 0;
  if (checksum64(&unsigned_header, sizeof unsigned_header) != header.checksum) file->damaged("the checksum of its header does not match");
  if (header.analyser < 1 || header.analyser > 4) file->damaged("its analyser is unknown");
  for (const Section* section : {&header.lists, &header.lengths, &header.terms_section, &header.term_index}) {
    if (section->offset > bytes || section->bytes > bytes - section->offset) {
      file->damaged("a section ends past the file's " + std::to_string(bytes) + " bytes");
    }
  }
  file->term_blocks_ = (header.terms + kTermsPerBlock - 1) / kTermsPerBlock;
  if (header.rows > 0xFFFFFFFFull || header.lengths.bytes != header.rows || header.documents > header.rows || header.longest_code > 255 ||
      header.lists.bytes < kBlockPadding || header.terms > header.postings ||
      header.term_index.bytes != (file->term_blocks_ + 1) * sizeof(TermBlockPlace)) {
    file->damaged("its counts do not match its sections");
  }
  const uint8_t* data = file->file_->data();
  file->lists_ = data + header.lists.offset;
  file->length_codes_ = data + header.lengths.offset;
  file->terms_ = data + header.terms_section.offset;
  file->term_index_ = data + header.term_index.offset;
  file->file_->advise(MappedFile::Pattern::kRandom);
  return file;
}

void LexicalFile::damaged(const std::string& what) const {
  throw Error(ErrorCode::kBadFile, path_ + ": " + what + ". Build it again with trawl optimize --bm25.");
}

TermBlockPlace LexicalFile::place(uint64_t block) const {
  TermBlockPlace place;
  std::memcpy(&place, term_index_ + block * sizeof place, sizeof place);
  if (place.terms > header_.terms_section.bytes || place.lists > header_.lists.bytes - kBlockPadding) {
    damaged("its term index points outside its sections");
  }
  return place;
}

uint64_t LexicalFile::read_long_number(const uint8_t*& at) const {
  uint64_t value;
  if (!read_varint(at, terms_ + header_.terms_section.bytes, value)) damaged("its dictionary is truncated");
  return value;
}

std::string_view LexicalFile::first_term(uint64_t block) const {
  const uint8_t* at = terms_ + place(block).terms;
  const TermSizes sizes = read_sizes(at, 0);
  return {reinterpret_cast<const char*>(at), sizes.more};
}

TermPostings LexicalFile::read_postings(const uint8_t*& at, uint64_t& list) const {
  const uint64_t first = read_number(at);
  const bool once = first == 0;
  const uint64_t count = once ? 1 : first;
  if (count > header_.rows) damaged("a term is in " + std::to_string(count) + " rows");
  if (count == 1) {
    const uint64_t row = read_number(at);
    const uint64_t tf = once ? 1 : read_number(at) + 1;
    if (row >= header_.rows || tf > 0x7FFFFFFF) damaged("a posting has a row or a frequency out of range");
    return {1, static_cast<uint32_t>(row), static_cast<uint32_t>(tf), nullptr, 0};
  }
  const uint64_t bytes = read_number(at);
  const uint64_t end = header_.lists.bytes - kBlockPadding;
  if (list > end || bytes > end - list) damaged("a posting list ends past its section");
  list += bytes;
  return {static_cast<uint32_t>(count), 0, 0, lists_ + list - bytes, bytes};
}

void LexicalFile::skip_postings(const uint8_t*& at, uint64_t& list) const {
  const uint64_t count = read_number(at);
  if (count > 1) {
    // Sums of the bytes of a damaged file may wrap; read_postings() checks where a list begins and ends.
    list += read_number(at);
    return;
  }
  skip_number(at);
  if (count == 1) skip_number(at);
}

TermPostings LexicalFile::find(std::string_view term) const {
  // Find the last block whose first term is not after `term`.
  uint64_t low = 0;
  uint64_t high = term_blocks_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (first_term(middle) <= term) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return {};
  const TermBlockPlace begin = place(low - 1);
  const uint64_t count = std::min<uint64_t>(kTermsPerBlock, header_.terms - (low - 1) * kTermsPerBlock);
  const uint8_t* at = terms_ + begin.terms;
  uint64_t list = begin.lists;
  size_t equal = 0;  // length of the common prefix of the block's term and the wanted term
  uint64_t previous_size = 0;
  for (uint64_t i = 0; i < count; i++) {
    const auto [shared, more] = read_sizes(at, previous_size);
    previous_size = shared + more;
    // A term is larger than the one before it at the first byte that differs. If it shares more than `equal` bytes with that
    // term, it is still before the wanted term. If it shares fewer, it is after the wanted term.
    if (shared < equal) return {};
    if (shared == equal) {
      uint64_t same = 0;
      while (same < more && equal < term.size() && at[same] == static_cast<uint8_t>(term[equal])) {
        same++;
        equal++;
      }
      if (equal == term.size() && same == more) {
        at += more;
        return read_postings(at, list);
      }
      if (same < more && (equal == term.size() || at[same] > static_cast<uint8_t>(term[equal]))) return {};
    }
    at += more;
    skip_postings(at, list);
  }
  return {};
}

}  // namespace trawl::lexical
