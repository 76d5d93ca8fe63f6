#include "lexical/lexical_writer.hpp"

#include <algorithm>
#include <cstring>

#include "lexical/varint.hpp"
#include "trawl/sizes.hpp"

namespace trawl::lexical {
namespace {

constexpr size_t kWriteBytes = 1 << 20;

}  // namespace

LexicalWriter::LexicalWriter(const std::string& path, Analyser analyser, const std::vector<uint8_t>& length_codes, uint64_t tokens)
    : length_codes_(length_codes), file_(path, OutputFile::Unfinished::kKeep) {
  std::memcpy(header_.magic, kLexicalMagic, sizeof header_.magic);
  header_.version = kLexicalVersion;
  header_.analyser = static_cast<uint32_t>(analyser);
  header_.rows = length_codes.size();
  header_.documents = header_.rows - std::count(length_codes.begin(), length_codes.end(), 0);
  header_.tokens = tokens;
  header_.longest_code = length_codes.empty() ? 0 : *std::max_element(length_codes.begin(), length_codes.end());
  const LexicalHeader unfinished = {};
  write(&unfinished, sizeof unfinished);
  header_.lists.offset = position_;
}

void LexicalWriter::add_term(std::string_view term, const std::vector<Posting>& postings) {
  const uint64_t list_offset = position_ + pending_.size() - header_.lists.offset;
  size_t shared = 0;
  if (header_.terms % kTermsPerBlock == 0) {
    term_index_.push_back({terms_.size(), list_offset});
  } else {
    const size_t limit = std::min(term.size(), previous_term_.size());
    while (shared < limit && term[shared] == previous_term_[shared]) shared++;
  }
  append_term(shared, term.substr(shared));
  const bool once = postings.size() == 1 && postings[0].tf == 1;
  append_varint(terms_, once ? 0 : postings.size());
  if (postings.size() == 1) {
    append_varint(terms_, postings[0].row);
    if (!once) append_varint(terms_, postings[0].tf - 1);
  } else {
    list_.clear();
    encode_list(postings);
    append_varint(terms_, list_.size());
    lists_checksum_.add(list_.data(), list_.size());
    pending_.insert(pending_.end(), list_.begin(), list_.end());
    if (pending_.size() >= kWriteBytes) {
      write(pending_.data(), pending_.size());
      pending_.clear();
    }
  }
  header_.terms++;
  header_.postings += postings.size();
  previous_term_ = term;
}

void LexicalWriter::append_term(size_t shared, std::string_view more) {
  const size_t high = std::min<size_t>(shared, kHalfByte);
  const size_t low = std::min<size_t>(more.size(), kHalfByte);
  terms_.push_back(static_cast<uint8_t>(high << 4 | low));
  if (high == kHalfByte) append_varint(terms_, shared - kHalfByte);
  if (low == kHalfByte) append_varint(terms_, more.size() - kHalfByte);
  terms_.insert(terms_.end(), more.begin(), more.end());
}

void LexicalWriter::encode_list(const std::vector<Posting>& postings) {
  const auto count = static_cast<uint32_t>(postings.size());
  if (count <= kBlockPostings) return encode_block(postings.data(), count, -1, list_);
  std::vector<BlockHead> heads;
  BoundCollector list_bounds;
  BoundCollector block_bounds;
  blocks_.clear();
  int64_t previous_row = -1;
  for (uint32_t first = 0; first < count; first += kBlockPostings) {
    const uint32_t size = std::min(kBlockPostings, count - first);
    block_bounds.clear();
    for (uint32_t i = first; i < first + size; i++) block_bounds.add(postings[i].tf, length_codes_[postings[i].row]);
    const BlockHead head = {postings[first + size - 1].row, checked_u32(blocks_.size(), "the size of a term's postings"),
                            block_bounds.pairs()};
    list_bounds.add(head.bounds);
    heads.push_back(head);
    encode_block(&postings[first], size, previous_row, blocks_);
    previous_row = head.last_row;
  }
  const BoundPairs bounds = list_bounds.pairs();
  const auto append = [this](const void* data, size_t bytes) {
    const auto* begin = static_cast<const uint8_t*>(data);
    list_.insert(list_.end(), begin, begin + bytes);
  };
  append(&bounds, sizeof bounds);
  append(heads.data(), heads.size() * sizeof(BlockHead));
  append(blocks_.data(), blocks_.size());
}

void LexicalWriter::finish() {
  // The reader unpacks eight bytes at a time, so it may read past the last block.
  const uint8_t padding[kBlockPadding] = {};
  lists_checksum_.add(padding, sizeof padding);
  pending_.insert(pending_.end(), padding, padding + sizeof padding);
  write(pending_.data(), pending_.size());
  header_.lists.bytes = position_ - header_.lists.offset;
  header_.lists.checksum = lists_checksum_.finish();
  term_index_.push_back({terms_.size(), header_.lists.bytes - kBlockPadding});
  header_.lengths = append_section(length_codes_.data(), length_codes_.size());
  header_.terms_section = append_section(terms_.data(), terms_.size());
  header_.term_index = append_section(term_index_.data(), term_index_.size() * sizeof(TermBlockPlace));
  header_.checksum = checksum64(&header_, sizeof header_);
  // Readers recognise the file by its header, so write the header after everything else is on the disk.
  file_.sync();
  file_.write_at(0, &header_, sizeof header_);
  file_.finish();
}

Section LexicalWriter::append_section(const void* data, size_t bytes) {
  const uint8_t zeros[64] = {};
  write(zeros, (64 - position_ % 64) % 64);
  SectionChecksum checksum;
  checksum.add(static_cast<const uint8_t*>(data), bytes);
  const Section section = {position_, bytes, checksum.finish()};
  write(data, bytes);
  return section;
}

void LexicalWriter::write(const void* data, size_t bytes) {
  file_.write_at(static_cast<int64_t>(position_), data, static_cast<int64_t>(bytes));
  position_ += bytes;
}

}  // namespace trawl::lexical
