#include "trawl/lexical_index.hpp"

#include <algorithm>

#include "lexical/lexical_shards.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {

LexicalIndex::LexicalIndex() : state_(std::make_unique<State>()) {}
LexicalIndex::~LexicalIndex() = default;

void LexicalIndex::add_shard(const std::string& path) {
  auto file = LexicalFile::open(path);
  const LexicalHeader& header = file->header();
  const auto analyser = static_cast<Analyser>(header.analyser);
  if (!state_->shards.empty() && analyser != state_->analyser) {
    throw Error(ErrorCode::kBadArgument, path + ": its analyser differs from the analyser of the shards before it");
  }
  state_->analyser = analyser;
  state_->counts.documents += header.documents;
  state_->counts.tokens += header.tokens;
  state_->shards.push_back({file, state_->rows});
  state_->longest_code = std::max(state_->longest_code, static_cast<uint8_t>(header.longest_code));
  state_->rows += static_cast<int64_t>(header.rows);
}

void LexicalIndex::set_deleted(const std::string& path) {
  auto file = LexicalFile::open(path);
  const LexicalHeader& header = file->header();
  if (static_cast<Analyser>(header.analyser) != state_->analyser) {
    throw Error(ErrorCode::kBadFile, path + ": its analyser differs from the analyser of the shards");
  }
  if (header.documents > state_->counts.documents || header.tokens > state_->counts.tokens) {
    file->damaged("it has more rows or tokens than the shards");
  }
  state_->counts.documents -= header.documents;
  state_->counts.tokens -= header.tokens;
  state_->deleted = std::move(file);
}

void LexicalIndex::require_unchanged() const {
  for (const Shard& shard : state_->shards) shard.file->require_unchanged();
  if (state_->deleted != nullptr) state_->deleted->require_unchanged();
}

int64_t LexicalIndex::rows() const { return state_->rows; }
uint8_t LexicalIndex::longest_code() const { return state_->longest_code; }
Analyser LexicalIndex::analyser() const { return state_->analyser; }
LexicalCounts LexicalIndex::counts() const { return state_->counts; }
const std::vector<LexicalIndex::Shard>& LexicalIndex::shards() const { return state_->shards; }

int64_t LexicalIndex::mapped_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : state_->shards) bytes += shard.file->bytes();
  if (state_->deleted != nullptr) bytes += state_->deleted->bytes();
  return bytes;
}

uint64_t LexicalIndex::document_frequency(std::string_view term) const { return document_frequency(term, nullptr); }

uint64_t LexicalIndex::document_frequency(std::string_view term, TermPostings* postings) const {
  uint64_t count = 0;
  for (const Shard& shard : state_->shards) {
    const TermPostings found = shard.file->find(term);
    if (postings != nullptr) *postings++ = found;
    count += found.count;
  }
  if (state_->deleted == nullptr) return count;
  const uint64_t deleted = state_->deleted->find(term).count;
  if (deleted > count) state_->deleted->damaged("it has more rows with a term than the shards");
  return count - deleted;
}

BagOfWords bag_of_words(Analyser analyser, std::string_view query) {
  Terms terms;
  analyse(analyser, query, terms);
  // Sum the boosts of equal terms at their first place. A map would be faster only for queries of thousands of words.
  std::vector<std::pair<std::string_view, uint32_t>> places;
  for (size_t i = 0; i < terms.size(); i++) places.push_back({terms[i], static_cast<uint32_t>(i)});
  std::sort(places.begin(), places.end());
  std::vector<std::pair<uint32_t, uint32_t>> firsts;  // first place and number of occurrences
  for (size_t i = 0; i < places.size();) {
    size_t end = i + 1;
    while (end < places.size() && places[end].first == places[i].first) end++;
    firsts.push_back({places[i].second, static_cast<uint32_t>(end - i)});
    i = end;
  }
  std::sort(firsts.begin(), firsts.end());
  BagOfWords bag;
  for (const auto& [place, times] : firsts) bag.push_back({std::string(terms[place]), static_cast<float>(times)});
  return bag;
}

}  // namespace trawl::lexical
