// Writes a `.bm25` file from terms in sorted order.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.hpp"
#include "lexical/bound_pairs.hpp"
#include "lexical/lexical_format.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/section_checksum.hpp"
#include "trawl/analyser.hpp"

namespace trawl::lexical {

class LexicalWriter {
 public:
  // `length_codes`: one byte per row, which must stay valid until finish(). Throws kWriteFailed.
  LexicalWriter(const std::string& path, Analyser analyser, const std::vector<uint8_t>& length_codes, uint64_t tokens);
  LexicalWriter(const LexicalWriter&) = delete;
  LexicalWriter& operator=(const LexicalWriter&) = delete;

  // Terms must come in byte order, each once, with their postings in row order.
  void add_term(std::string_view term, const std::vector<Posting>& postings);

  // Writes the rest of the file and flushes it to disk. Before that, readers refuse the file.
  void finish();

 private:
  void append_term(size_t shared, std::string_view more);
  void encode_list(const std::vector<Posting>& postings);
  void write(const void* data, size_t bytes);
  Section append_section(const void* data, size_t bytes);

  const std::vector<uint8_t>& length_codes_;
  LexicalHeader header_ = {};
  OutputFile file_;
  uint64_t position_ = 0;
  SectionChecksum lists_checksum_;
  std::vector<uint8_t> list_;
  std::vector<uint8_t> blocks_;
  std::vector<uint8_t> pending_;
  std::vector<uint8_t> terms_;
  std::vector<TermBlockPlace> term_index_;
  std::string previous_term_;
};

}  // namespace trawl::lexical
