// An exhaustive search for composed queries, which scores row by row.
#pragma once
#include <algorithm>
#include <map>
#include <optional>

#include "bm25_definition.hpp"
#include "lexical_queries.hpp"
#include "lexical_query_rewriting.hpp"

namespace lexical_test {

// The terms of each field, counted directly from the texts of the live rows.
class QueryOracle {
 public:
  QueryOracle(const std::vector<Texts>& fields, const std::vector<bool>& is_live) : is_live_(is_live) {
    for (const Texts& texts : fields) {
      Counted field;
      for (size_t row = 0; row < texts.size(); row++) {
        const auto words = bm25_definition::words(texts[row]);
        std::map<std::string, uint32_t> frequencies;
        for (const std::string& word : words) frequencies[word]++;
        if (is_live[row]) {
          field.documents += words.empty() ? 0 : 1;
          field.tokens += words.size();
          for (const auto& entry : frequencies) field.document_frequencies[entry.first]++;
        }
        field.rows.push_back(frequencies);
        field.lengths.push_back(words.size());
      }
      fields_.push_back(std::move(field));
    }
  }

  std::vector<Hit> search(const Query& query, const LexicalOptions& options, const std::vector<bool>& may_be_found) const {
    const Tree tree = rewritten(to_tree(query));
    const bm25_definition::Parameters parameters = {options.k1, options.b, options.factor_k1_plus_1};
    std::vector<Hit> hits;
    for (size_t row = 0; row < is_live_.size(); row++) {
      if (!is_live_[row] || !may_be_found[row]) continue;
      const auto score = score_of(tree, row, 1, parameters);
      if (score) hits.push_back({*score, static_cast<int64_t>(row)});
    }
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
    if (static_cast<int64_t>(hits.size()) > options.k) hits.resize(options.k);
    return hits;
  }

 private:
  struct Counted {
    uint64_t documents = 0;
    uint64_t tokens = 0;
    std::map<std::string, uint64_t> document_frequencies;
    std::vector<std::map<std::string, uint32_t>> rows;
    std::vector<uint64_t> lengths;
  };

  // Whether the query has a scorer in Lucene: a term that is not in the index has none.
  bool has_scorer(const Tree& tree) const {
    const auto has = [&](const Tree& one) { return has_scorer(one); };
    if (tree.kind == "term") return fields_[tree.field].document_frequencies.count(tree.word) != 0;
    if (tree.kind == "all") return true;
    if (tree.kind == "none") return false;
    if (tree.kind == "rows") return std::any_of(tree.rows->begin(), tree.rows->end(), [](uint64_t word) { return word != 0; });
    if (tree.kind == "bool") {
      if (!std::all_of(tree.must.begin(), tree.must.end(), has) || !std::all_of(tree.filter.begin(), tree.filter.end(), has)) return false;
      const auto shoulds = std::count_if(tree.should.begin(), tree.should.end(), has);
      return shoulds >= tree.minimum && tree.must.size() + tree.filter.size() + shoulds > 0;
    }
    return std::any_of(tree.of.begin(), tree.of.end(), has);
  }

  std::optional<float> score_of(const Tree& tree, size_t row, float boost, const bm25_definition::Parameters& parameters) const {
    const auto score = [&](const Tree& one) { return score_of(one, row, boost, parameters); };
    if (tree.kind == "^") return score_of(tree.of[0], row, tree.number * boost, parameters);
    if (tree.kind == "all") return boost;
    if (tree.kind == "rows") {
      if (((*tree.rows)[row >> 6] >> (row & 63) & 1) == 0) return std::nullopt;
      if (tree.scores == nullptr) return boost;
      size_t before = static_cast<size_t>(__builtin_popcountll((*tree.rows)[row >> 6] & ((uint64_t{1} << (row & 63)) - 1)));
      for (size_t word = 0; word < row >> 6; word++) before += static_cast<size_t>(__builtin_popcountll((*tree.rows)[word]));
      return (*tree.scores)[before] * boost;
    }
    if (tree.kind == "constant") return score(tree.of[0]) ? std::optional<float>(boost) : std::nullopt;
    if (tree.kind == "term") {
      const Counted& field = fields_[tree.field];
      const auto tf = field.rows[row].find(tree.word);
      if (tf == field.rows[row].end()) return {};
      return bm25_definition::score(parameters, {field.documents, field.tokens}, field.document_frequencies.at(tree.word), boost,
                                    tf->second, field.lengths[row]);
    }
    if (tree.kind == "max") {
      std::vector<float> scores;
      for (const Tree& one : tree.of) {
        if (const auto found = score(one)) scores.push_back(*found);
      }
      if (scores.empty()) return {};
      const auto largest = std::max_element(scores.begin(), scores.end());
      double others = 0;
      for (auto at = scores.begin(); at != scores.end(); ++at) others += at == largest ? 0 : *at;
      return static_cast<float>(*largest + others * tree.number);
    }
    if (tree.kind != "bool") return {};
    int64_t present = 0;
    for (const Tree& one : tree.should) present += has_scorer(one) ? 1 : 0;
    double must = 0;
    double should = 0;
    int64_t matched = 0;
    for (const Tree& one : tree.must) {
      const auto found = score(one);
      if (!found) return {};
      must += *found;
    }
    for (const Tree& one : tree.filter) {
      if (!score(one)) return {};
    }
    for (const Tree& one : tree.must_not) {
      if (score(one)) return {};
    }
    for (const Tree& one : tree.should) {
      const auto found = score(one);
      if (!found) continue;
      matched++;
      should += *found;
    }
    if (matched < tree.minimum) return {};
    if (matched == 0 && tree.must.empty() && tree.filter.empty()) return {};
    // All should clauses that are in the index must match, so they count as must clauses.
    if (present == tree.minimum) return static_cast<float>(must + should);
    if (matched == 0) return static_cast<float>(must);
    return static_cast<float>(must) + static_cast<float>(should);
  }

  std::vector<Counted> fields_;
  std::vector<bool> is_live_;
};

}  // namespace lexical_test
