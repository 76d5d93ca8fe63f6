// An exhaustive search for bags of words.
#pragma once
#include <algorithm>
#include <map>

#include "bm25_definition.hpp"
#include "lexical_texts.hpp"

namespace lexical_test {

// Counts the words of the texts and scores by the definition. It shares no code with the engine.
class Oracle {
 public:
  explicit Oracle(const Texts& texts) {
    for (const std::string& text : texts) {
      const auto terms = bm25_definition::words(text);
      std::map<std::string, uint32_t> frequencies;
      for (const std::string& term : terms) frequencies[term]++;
      for (const auto& [term, tf] : frequencies) postings_[term].push_back({static_cast<int64_t>(lengths_.size()), tf});
      documents_ += terms.empty() ? 0 : 1;
      tokens_ += terms.size();
      lengths_.push_back(terms.size());
    }
  }

  // All rows that have a term of the query, best first.
  std::vector<Hit> search(const BagOfWords& query, const LexicalOptions& options, const std::vector<bool>* may_be_found = nullptr) const {
    std::vector<Hit> hits;
    if (documents_ == 0) return hits;
    const bm25_definition::Parameters parameters = {options.k1, options.b, options.factor_k1_plus_1};
    std::map<int64_t, double> sums;
    for (const WeightedTerm& term : query) {
      const auto found = postings_.find(term.term);
      if (found == postings_.end()) continue;
      for (const auto& [row, tf] : found->second) {
        sums[row] += bm25_definition::score(parameters, {documents_, tokens_}, found->second.size(), term.boost, tf, lengths_[row]);
      }
    }
    for (const auto& [row, sum] : sums) {
      if (may_be_found == nullptr || (*may_be_found)[row]) hits.push_back({static_cast<float>(sum), row});
    }
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
    if (static_cast<int64_t>(hits.size()) > options.k) hits.resize(options.k);
    return hits;
  }

 private:
  uint64_t documents_ = 0;
  uint64_t tokens_ = 0;
  std::map<std::string, std::vector<std::pair<int64_t, uint32_t>>> postings_;
  std::vector<uint64_t> lengths_;
};

}  // namespace lexical_test
