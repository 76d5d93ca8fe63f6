#include "trawl/lexical_verify.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/cancel.hpp"
#include "lexical/bound_pairs.hpp"
#include "lexical/lexical_file.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/section_checksum.hpp"
#include "lexical/similarity.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {
namespace {

uint64_t checksum_of(const uint8_t* data, uint64_t bytes) {
  SectionChecksum checksum;
  checksum.add(data, bytes);
  return checksum.finish();
}

std::string quoted(std::string_view term) { return "term \"" + std::string(term) + "\": "; }

// Returns a message about the list's first problem; empty if there is none. Adds the frequencies to the tokens of their rows.
std::string verify_list(const LexicalFile& file, std::string_view term, const TermPostings& postings, std::vector<uint32_t>& row_tokens) {
  const uint32_t blocks = (postings.count + kBlockPostings - 1) / kBlockPostings;
  const uint8_t* const end = postings.list + postings.list_bytes;
  BoundPairs list_bounds = {};
  const uint8_t* heads = postings.list + sizeof list_bounds;
  const uint8_t* data = postings.list;
  if (blocks > 1) {
    const uint64_t head_bytes = sizeof list_bounds + uint64_t{blocks} * sizeof(BlockHead);
    if (head_bytes > postings.list_bytes) return quoted(term) + "its list ends inside its block heads";
    std::memcpy(&list_bounds, postings.list, sizeof list_bounds);
    data += head_bytes;
  }
  int64_t previous = -1;
  uint32_t rows[kBlockPostings];
  uint32_t tfs[kBlockPostings];
  for (uint32_t block = 0; block < blocks; block++) {
    BlockHead head = {};
    if (blocks > 1) std::memcpy(&head, heads + block * sizeof head, sizeof head);
    const uint32_t count = std::min(kBlockPostings, postings.count - block * kBlockPostings);
    if (head.offset > static_cast<uint64_t>(end - data) ||
        !decode_block(data + head.offset, end, count, previous, file.rows(), rows, tfs)) {
      return quoted(term) + "block " + std::to_string(block) + " cannot be decoded";
    }
    for (uint32_t i = 0; i < count; i++) {
      const uint8_t code = file.length_codes()[rows[i]];
      if (code == 0) return quoted(term) + "row " + std::to_string(rows[i]) + " has a posting but no length";
      row_tokens[rows[i]] += tfs[i];
      if (blocks == 1) continue;
      if (!dominates(head.bounds, tfs[i], code) || !dominates(list_bounds, tfs[i], code)) {
        return quoted(term) + "the bounds of block " + std::to_string(block) + " do not hold for row " + std::to_string(rows[i]);
      }
    }
    if (blocks > 1 && head.last_row != rows[count - 1]) {
      return quoted(term) + "block " + std::to_string(block) + " ends at row " + std::to_string(rows[count - 1]) + ", but its head says " +
             std::to_string(head.last_row);
    }
    previous = rows[count - 1];
  }
  return {};
}

}  // namespace

std::string verify_lexical(const std::string& path, const std::atomic<bool>* cancel) {
  const auto file = LexicalFile::open(path);
  const LexicalHeader& header = file->header();
  const uint8_t* data = file->data();
  const struct {
    const char* name;
    const Section& section;
  } sections[] = {{"lists", header.lists}, {"lengths", header.lengths}, {"terms", header.terms_section}, {"term index", header.term_index}};
  for (const auto& [name, section] : sections) {
    if (checksum_of(data + section.offset, section.bytes) != section.checksum)
      return std::string("the checksum of its ") + name + " does not match";
  }
  const uint8_t* codes = file->length_codes();
  const uint64_t documents = header.rows - std::count(codes, codes + header.rows, 0);
  if (documents != header.documents) {
    return "it has " + std::to_string(documents) + " rows with tokens, but its header says " + std::to_string(header.documents);
  }
  std::string previous;
  std::string problem;
  uint64_t postings = 0;
  uint64_t terms = 0;
  std::vector<uint32_t> row_tokens(header.rows);  // the sum of the frequencies of each row's terms
  file->for_each_term([&](std::string_view term, const TermPostings& found) {
    if (terms % 1024 == 0) check_cancelled(cancel);
    if (terms > 0 && term <= previous) problem = quoted(term) + "the terms are not sorted: it follows \"" + previous + "\"";
    if (problem.empty() && found.count > 1) problem = verify_list(*file, term, found, row_tokens);
    if (problem.empty() && found.count == 1 && codes[found.row] == 0) {
      problem = quoted(term) + "row " + std::to_string(found.row) + " has a posting but no length";
    }
    if (problem.empty() && found.count == 1) row_tokens[found.row] += found.tf;
    previous = term;
    postings += found.count;
    terms++;
    return problem.empty();
  });
  if (!problem.empty()) return problem;
  if (postings != header.postings) {
    return "it has " + std::to_string(postings) + " postings, but its header says " + std::to_string(header.postings);
  }
  uint64_t tokens = 0;
  for (uint64_t row = 0; row < header.rows; row++) {
    tokens += row_tokens[row];
    if (length_code(row_tokens[row]) == codes[row]) continue;
    return "the terms of row " + std::to_string(row) + " occur " + std::to_string(row_tokens[row]) +
           " times, which differs from its length";
  }
  if (tokens != header.tokens) {
    return "it has " + std::to_string(tokens) + " tokens, but its header says " + std::to_string(header.tokens);
  }
  return {};
}

}  // namespace trawl::lexical
