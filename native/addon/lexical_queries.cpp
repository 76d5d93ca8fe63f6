#include "lexical_queries.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "base/cancel.hpp"
#include "trawl/error.hpp"

namespace trawl_addon {

using namespace trawl::lexical;

namespace {

constexpr int64_t kMaxClauses = int64_t{1} << 31;

float float_of(const Napi::Value& value, const std::string& name, float absent, double most) {
  if (value.IsUndefined()) return absent;
  const double number = number_of(value, name);
  const auto narrow = static_cast<float>(number);
  if (!(number >= 0) || !(number <= most) || !std::isfinite(narrow)) {
    throw bad_argument(value, name, most == 1 ? "a number from 0 to 1" : "a float32 of at least 0");
  }
  return narrow;
}

std::vector<MinimumRule> read_minimum(const Napi::Value& value) {
  if (value.IsUndefined()) return {};
  if (value.IsNumber()) return {{-1, integer_of(value, "minimumShouldMatch", -kMaxClauses, kMaxClauses), false}};
  const Napi::Array list = array_of(value, "minimumShouldMatch");
  std::vector<MinimumRule> rules;
  for (uint32_t i = 0; i < list.Length(); i++) {
    const Napi::Object rule = object_of(list.Get(i), "minimumShouldMatch");
    rules.push_back({integer_of(rule.Get("above"), "above", -kMaxClauses, kMaxClauses),
                     integer_of(rule.Get("count"), "count", -kMaxClauses, kMaxClauses), boolean_of(rule.Get("isPercent"), "isPercent")});
  }
  return rules;
}

// As Elasticsearch's Queries.calculateMinShouldMatch: the last rule before the first one that asks for more terms decides.
int64_t minimum_of(const std::vector<MinimumRule>& rules, int64_t terms) {
  if (rules.empty()) return 0;
  int64_t minimum = terms;
  for (const MinimumRule& rule : rules) {
    if (terms <= rule.above) break;
    const float part = static_cast<float>(terms * rule.count) * (1 / 100.0f);
    const int64_t wanted = rule.is_percent ? static_cast<int64_t>(part) : rule.count;
    // A negative percentage counts terms that may be absent even if it rounds to 0.
    const bool may_be_absent = rule.is_percent ? part < 0 : rule.count < 0;
    minimum = std::max<int64_t>(0, may_be_absent ? terms + wanted : wanted);
  }
  return minimum;
}

void collect_terms(const Query& query, std::set<std::string_view>& terms) {
  if (query.type == QueryType::kTerm) terms.insert(query.term);
  for (const auto* clauses : {&query.must, &query.should, &query.filter, &query.must_not, &query.queries}) {
    for (const Query& clause : *clauses) collect_terms(clause, terms);
  }
}

}  // namespace

RowBits LexicalQueries::rows_of(const Napi::Value& value) {
  auto words = std::make_shared<const std::vector<uint64_t>>(bitmap_of(value, "rows", rows_));
  uint64_t hash = 0;
  for (const uint64_t word : *words) hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  const auto [first, last] = sets_.equal_range(hash);
  const auto equal = std::find_if(first, last, [&](const auto& set) { return *set.second == *words; });
  return equal != last ? equal->second : sets_.emplace(hash, std::move(words))->second;
}

RowScores LexicalQueries::scores_of(const Napi::Value& value) {
  if (value.IsUndefined()) return nullptr;
  const Napi::Float32Array scores = floats_of(value, "scores");
  auto copied = std::make_shared<const std::vector<float>>(scores.Data(), scores.Data() + scores.ElementLength());
  const auto equal = std::find_if(scores_.begin(), scores_.end(), [&](const auto& known) { return *known == *copied; });
  return equal != scores_.end() ? *equal : scores_.emplace_back(std::move(copied));
}

LexicalQueries::LexicalQueries(const Napi::Value& list, const std::map<std::string, uint32_t>& fields, int64_t rows)
    : fields_(fields), rows_(rows) {
  const Napi::Array queries = array_of(list, "queries");
  const uint32_t count = queries.Length();
  // A long array of holes ends here, before it takes memory.
  for (uint32_t i = 0; i < count; i++) {
    const Napi::HandleScope scope(list.Env());
    object_of(queries.Get(i), "a query");
  }
  // Every vector gets its size before its queries are read, so their addresses do not change.
  trees_.resize(count);
  for (uint32_t i = 0; i < count; i++) {
    nodes_ = 0;
    count_nodes(list, 1);
    read(queries.Get(i), trees_[i], 1);
  }
}

void LexicalQueries::count_nodes(const Napi::Value& value, int64_t more) {
  nodes_ += more;
  if (nodes_ > kMaxQueryNodes) {
    throw bad_argument(value, "a query", "a tree of at most " + std::to_string(kMaxQueryNodes) + " nodes");
  }
}

uint32_t LexicalQueries::field_of(const Napi::Value& value) const {
  const auto found = fields_.find(string_of(value, "field"));
  if (found == fields_.end()) throw bad_argument(value, "field", "a field of the index");
  return found->second;
}

void LexicalQueries::read(const Napi::Value& value, Query& query, int depth) {
  // These limits also stop an object that contains itself, or the same object many times.
  if (depth > kMaxQueryDepth) {
    throw bad_argument(value, "a query", "nested at most " + std::to_string(kMaxQueryDepth) + " levels deep");
  }
  const Napi::HandleScope scope(value.Env());
  const Napi::Object object = object_of(value, "a query");
  const std::string type = string_of(object.Get("type"), "type");
  query.boost = float_of(object.Get("boost"), "boost", 1, INFINITY);
  if (type == "term") {
    query.type = QueryType::kTerm;
    query.field = field_of(object.Get("field"));
    query.term = string_of(object.Get("term"), "term");
  } else if (type == "match") {
    read_text(object, query);
  } else if (type == "bool") {
    query.type = QueryType::kBool;
    const Napi::Value minimum = object.Get("minimumShouldMatch");
    if (!minimum.IsUndefined()) query.minimum_should_match = integer_of(minimum, "minimumShouldMatch", 0, kMaxClauses);
    read_clauses(object.Get("must"), "must", query.must, depth);
    read_clauses(object.Get("should"), "should", query.should, depth);
    read_clauses(object.Get("filter"), "filter", query.filter, depth);
    read_clauses(object.Get("mustNot"), "mustNot", query.must_not, depth);
  } else if (type == "dis-max") {
    query.type = QueryType::kDisMax;
    query.tie_breaker = float_of(object.Get("tieBreaker"), "tieBreaker", 0, 1);
    read_clauses(array_of(object.Get("queries"), "queries"), "queries", query.queries, depth);
  } else if (type == "constant-score") {
    query.type = QueryType::kConstantScore;
    query.queries.resize(1);
    count_nodes(value, 1);
    read(object.Get("query"), query.queries[0], depth + 1);
  } else if (type == "rows") {
    query.type = QueryType::kRows;
    query.rows = rows_of(object.Get("rows"));
    query.row_scores = scores_of(object.Get("scores"));
  } else if (type == "match-all") {
    query.type = QueryType::kMatchAll;
  } else if (type != "match-none") {
    throw bad_argument(object.Get("type"), "type",
                       "'term', 'match', 'bool', 'dis-max', 'constant-score', 'rows', 'match-all' or 'match-none'");
  }
}

void LexicalQueries::read_text(const Napi::Object& object, Query& query) {
  const Napi::Value op = object.Get("operator"), without_terms = object.Get("withoutTerms");
  const std::string name = op.IsUndefined() ? "or" : string_of(op, "operator");
  if (name != "or" && name != "and") throw bad_argument(op, "operator", "'or' or 'and'");
  const std::string empty = without_terms.IsUndefined() ? "none" : string_of(without_terms, "withoutTerms");
  if (empty != "none" && empty != "all") throw bad_argument(without_terms, "withoutTerms", "'none' or 'all'");
  texts_.push_back({&query, field_of(object.Get("field")), string_of(object.Get("text"), "text"), name == "and", empty == "all",
                    read_minimum(object.Get("minimumShouldMatch"))});
}

void LexicalQueries::read_clauses(const Napi::Value& value, const std::string& name, std::vector<Query>& clauses, int depth) {
  if (value.IsUndefined()) return;
  const Napi::Array list = array_of(value, name);
  const uint32_t count = list.Length();
  count_nodes(value, count);
  clauses.resize(count);
  for (uint32_t i = 0; i < count; i++) read(list.Get(i), clauses[i], depth + 1);
}

void LexicalQueries::analyse(const std::vector<Analyser>& analysers, const std::atomic<bool>& cancel) {
  for (Text& text : texts_) {
    trawl::check_cancelled(&cancel);
    Query& query = *text.place;
    const auto make_term = [&](Query& place, std::string term, float boost) {
      place.type = QueryType::kTerm;
      place.field = text.field;
      place.term = std::move(term);
      place.boost = boost;
    };
    BagOfWords bag = bag_of_words(analysers[text.field], text.text);
    int64_t count = 0;  // repeated terms included
    for (const WeightedTerm& term : bag) count += static_cast<int64_t>(term.boost);
    if (count == 0) {
      if (text.all_rows_without_terms) query.type = QueryType::kMatchAll;
      continue;
    }
    if (count == 1) {
      make_term(query, std::move(bag[0].term), query.boost);
      continue;
    }
    query.type = QueryType::kBool;
    // As in Elasticsearch, which counts only the clauses that need not match.
    query.minimum_should_match = minimum_of(text.minimum, text.all_terms ? 0 : count);
    if (!text.all_terms && query.minimum_should_match <= 1) {
      // Repeated terms stay one clause. The rewriting would merge them, but a long text could exceed kMaxQueryNodes before.
      query.should.resize(bag.size());
      for (size_t i = 0; i < bag.size(); i++) make_term(query.should[i], std::move(bag[i].term), bag[i].boost);
      continue;
    }
    Terms terms;
    trawl::lexical::analyse(analysers[text.field], text.text, terms);
    std::vector<Query>& clauses = text.all_terms ? query.must : query.should;
    clauses.resize(terms.size());
    for (size_t i = 0; i < terms.size(); i++) make_term(clauses[i], std::string(terms[i]), 1);
  }
  texts_.clear();
}

uint32_t LexicalQueries::count_terms(size_t tree) const {
  std::set<std::string_view> terms;
  collect_terms(trees_[tree], terms);
  return static_cast<uint32_t>(terms.size());
}

}  // namespace trawl_addon
