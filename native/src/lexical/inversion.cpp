#include "lexical/inversion.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lexical/similarity.hpp"
#include "lexical/varint.hpp"

namespace trawl::lexical {
namespace {

struct RowTerm {
  uint32_t term;
  uint32_t row;
  uint32_t tf;
};

}  // namespace

Vocabulary::Vocabulary() : slots_(1 << 12) {}

uint32_t Vocabulary::number_of(std::string_view term) {
  const auto bytes = static_cast<uint32_t>(term.size());
  const uint64_t key = key_of(term);
  const size_t mask = slots_.size() - 1;
  for (size_t at = place_of(key, bytes) & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.number == 0) {
      slot = {key, bytes, size() + 1};
      bytes_.append(term);
      ends_.push_back(bytes_.size());
      if (2 * ends_.size() > slots_.size()) grow();
      return size() - 1;
    }
    if (slot.key == key && slot.bytes == bytes && (bytes <= sizeof key || this->term(slot.number - 1) == term)) return slot.number - 1;
  }
}

// The bytes of a short term, a hash of a long one.
uint64_t Vocabulary::key_of(std::string_view term) {
  uint64_t key = 0;
  size_t at = 0;
  for (; term.size() - at >= sizeof key; at += sizeof key) {
    uint64_t eight;
    std::memcpy(&eight, term.data() + at, sizeof eight);
    key = term.size() == sizeof key ? eight : mix(key ^ eight);
  }
  uint64_t rest = 0;
  for (size_t i = 0; at + i < term.size(); i++) rest |= static_cast<uint64_t>(static_cast<uint8_t>(term[at + i])) << 8 * i;
  return term.size() < sizeof key ? rest : term.size() == sizeof key ? key : mix(key ^ rest);
}

uint64_t Vocabulary::mix(uint64_t key) {
  key *= 0x9E3779B185EBCA87ull;
  return key ^ key >> 32;
}

void Vocabulary::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    size_t at = place_of(slot.key, slot.bytes) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

Inversion invert(Analyser analyser, const char* texts, const uint64_t* ends, size_t count, uint32_t first_row) {
  Inversion result;
  Vocabulary vocabulary;
  std::vector<RowTerm> postings;
  std::vector<uint32_t> frequency_of_term;  // number of rows of the part that have the term
  std::vector<size_t> next_of_term;         // index after the term's last posting
  Terms terms;
  for (size_t i = 0; i < count; i++) {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    analyse(analyser, {texts + begin, ends[i] - begin}, terms);
    const uint32_t row = first_row + static_cast<uint32_t>(i);
    const size_t row_begin = postings.size();
    for (size_t t = 0; t < terms.size(); t++) {
      const uint32_t term = vocabulary.number_of(terms[t]);
      if (term == frequency_of_term.size()) {
        frequency_of_term.push_back(0);
        next_of_term.push_back(0);
      }
      if (next_of_term[term] > row_begin) {
        postings[next_of_term[term] - 1].tf++;
        continue;
      }
      postings.push_back({term, row, 1});
      next_of_term[term] = postings.size();
      frequency_of_term[term]++;
    }
    result.length_codes.push_back(length_code(terms.size()));
    result.tokens += terms.size();
  }

  // Sort the postings by term. A counting sort keeps the order of the rows.
  std::vector<uint32_t> first_of_term(vocabulary.size() + 1, 0);
  std::partial_sum(frequency_of_term.begin(), frequency_of_term.end(), first_of_term.begin() + 1);
  std::vector<Posting> by_term(postings.size());
  {
    std::vector<uint32_t> next(first_of_term.begin(), first_of_term.end() - 1);
    for (const RowTerm& posting : postings) by_term[next[posting.term]++] = {posting.row, posting.tf};
  }
  std::vector<uint32_t> order(vocabulary.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return vocabulary.term(a) < vocabulary.term(b); });
  for (const uint32_t number : order) {
    const std::string_view term = vocabulary.term(number);
    append_varint(result.run, term.size());
    result.run.insert(result.run.end(), term.begin(), term.end());
    append_varint(result.run, frequency_of_term[number]);
    int64_t previous = -1;
    for (uint32_t i = first_of_term[number]; i < first_of_term[number + 1]; i++) {
      append_varint(result.run, static_cast<uint64_t>(by_term[i].row - previous - 1));
      append_varint(result.run, by_term[i].tf - 1);
      previous = by_term[i].row;
    }
  }
  return result;
}

}  // namespace trawl::lexical
