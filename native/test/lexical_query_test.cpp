// Composed queries: compares the search with an exhaustive oracle, which rewrites the query differently and scores row by row.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "lexical/similarity.hpp"
#include "oracle.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_query.hpp"

using namespace trawl::lexical;
using trawl::ErrorCode;
using trawl::ThreadPool;

namespace {

using Texts = std::vector<std::string>;
using Fields = std::vector<const LexicalIndex*>;

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

Query term(const std::string& text, uint32_t field = 0, float boost = 1) {
  Query query;
  query.type = QueryType::kTerm;
  query.term = text;
  query.field = field;
  query.boost = boost;
  return query;
}

Query any_of(std::vector<Query> should, int64_t minimum = 0, float boost = 1) {
  Query query;
  query.type = QueryType::kBool;
  query.should = std::move(should);
  query.minimum_should_match = minimum;
  query.boost = boost;
  return query;
}

Query all_of(std::vector<Query> must) {
  Query query;
  query.type = QueryType::kBool;
  query.must = std::move(must);
  return query;
}

Query best_of(std::vector<Query> queries, float tie_breaker = 0) {
  Query query;
  query.type = QueryType::kDisMax;
  query.queries = std::move(queries);
  query.tie_breaker = tie_breaker;
  return query;
}

Query constant(Query inner, float boost = 1) {
  Query query;
  query.type = QueryType::kConstantScore;
  query.queries = {std::move(inner)};
  query.boost = boost;
  return query;
}

Query of_type(QueryType type, float boost = 1) {
  Query query;
  query.type = type;
  query.boost = boost;
  return query;
}

// The frequency of word w is about 1 / (w + 1). Some texts equal the text before them, and some repeat one word.
Texts random_texts(std::mt19937& random, int count, int words, int length) {
  std::vector<double> weights;
  for (int w = 0; w < words; w++) weights.push_back(1.0 / (w + 1));
  std::discrete_distribution<int> word(weights.begin(), weights.end());
  Texts texts;
  for (int i = 0; i < count; i++) {
    std::string text;
    const int n = std::uniform_int_distribution<int>(0, length)(random);
    for (int j = 0; j < n; j++) text += "w" + std::to_string(word(random)) + " ";
    if (i > 0 && i % 5 == 0) text = texts[i - 1];
    if (i % 31 == 5) {
      for (int j = 0; j < 300; j++) text += "w1 ";
    }
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Field {
  oracle::TempDir directory;
  LexicalIndex index;
};

void write_shard(const std::string& path, const Texts& texts, ThreadPool& pool) {
  std::string all;
  std::vector<uint64_t> ends;
  for (const std::string& text : texts) {
    all += text;
    ends.push_back(all.size());
  }
  LexicalBuilder builder(path, Analyser::kWhitespace, pool);
  builder.add(all.data(), ends.data(), ends.size());
  builder.finish();
}

// The shards begin at random rows, so that two fields have different shards.
std::unique_ptr<Field> build_field(const Texts& texts, int shards, const std::vector<bool>& is_live, std::mt19937& random,
                                   ThreadPool& pool) {
  auto field = std::make_unique<Field>();
  std::vector<size_t> ends;
  for (int s = 1; s < shards; s++) ends.push_back(random() % (texts.size() + 1));
  ends.push_back(texts.size());
  std::sort(ends.begin(), ends.end());
  size_t first = 0;
  for (const size_t end : ends) {
    if (end == first) continue;
    const std::string path = field->directory.file();
    write_shard(path, Texts(texts.begin() + first, texts.begin() + end), pool);
    field->index.add_shard(path);
    first = end;
  }
  Texts deleted;
  for (size_t i = 0; i < texts.size(); i++) {
    if (!is_live[i]) deleted.push_back(texts[i]);
  }
  if (deleted.empty()) return field;
  const std::string path = field->directory.file();
  write_shard(path, deleted, pool);
  field->index.set_deleted(path);
  return field;
}

struct Hit {
  float score;
  int64_t row;
};

// A query tree that owns copies of its parts. A node "^" is Lucene's BoostQuery.
struct Tree {
  std::string kind;  // term, bool, max, constant, all, none, ^
  float number = 1;  // boost or tie breaker
  uint32_t field = 0;
  std::string word;
  int64_t minimum = 0;
  std::vector<Tree> must, should, filter, must_not, of;

  // The exact tree as text.
  std::string text() const {
    std::string out = "(" + kind + " " + std::to_string(bits_of(number)) + " " + std::to_string(field) + word + " " + std::to_string(minimum);
    for (const auto* list : {&must, &should, &filter, &must_not, &of}) {
      out += "[";
      for (const Tree& one : *list) out += one.text();
      out += "]";
    }
    return out + ")";
  }

  // A text that is equal for queries that Lucene considers equal.
  std::string key() const {
    std::string out = "(" + kind + " " + std::to_string(bits_of(number)) + " " + std::to_string(field) + word + " " + std::to_string(minimum);
    int which = 0;
    for (const auto* list : {&must, &should, &filter, &must_not, &of}) {
      std::vector<std::string> keys;
      for (const Tree& one : *list) keys.push_back(one.key());
      std::sort(keys.begin(), keys.end());
      if (which == 2 || which == 3) keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      out += "[";
      for (const std::string& one : keys) out += one;
      out += "]";
      which++;
    }
    return out + ")";
  }
  size_t clauses() const { return must.size() + should.size() + filter.size() + must_not.size(); }
};

Tree wrap(const std::string& kind, Tree inner, float number = 1) {
  Tree tree;
  tree.kind = kind;
  tree.number = number;
  tree.of.push_back(std::move(inner));
  return tree;
}

Tree nothing() {
  Tree tree;
  tree.kind = "none";
  return tree;
}

Tree to_tree(const Query& query) {
  const auto each = [](const std::vector<Query>& queries) {
    std::vector<Tree> trees;
    for (const Query& one : queries) trees.push_back(to_tree(one));
    return trees;
  };
  Tree tree;
  switch (query.type) {
    case QueryType::kTerm:
      tree.kind = "term";
      tree.field = query.field;
      tree.word = query.term;
      break;
    case QueryType::kBool:
      tree.kind = "bool";
      tree.minimum = query.minimum_should_match;
      tree.must = each(query.must);
      tree.should = each(query.should);
      tree.filter = each(query.filter);
      tree.must_not = each(query.must_not);
      break;
    case QueryType::kDisMax:
      tree.kind = "max";
      tree.number = query.tie_breaker;
      tree.of = each(query.queries);
      break;
    case QueryType::kConstantScore:
      tree.kind = "constant";
      tree.of = each(query.queries);
      break;
    case QueryType::kMatchAll:
      tree.kind = "all";
      break;
    case QueryType::kMatchNone:
      return nothing();
  }
  return query.boost == 1 ? tree : wrap("^", tree, query.boost);
}

bool holds(const std::vector<Tree>& list, const Tree& sought) {
  return std::any_of(list.begin(), list.end(), [&](const Tree& one) { return one.key() == sought.key(); });
}

// Rewrites one step at a time, as Lucene's classes do: the first change ends the step.
Tree step(const Tree& tree);

Tree without_scores(const Tree& tree) {
  Tree out = tree;
  out.must.clear();
  out.filter.clear();
  const auto strip = [](Tree one) {
    if (one.kind == "^") one = Tree(one.of[0]);
    if (one.kind == "constant") one = Tree(one.of[0]);
    return one.kind == "bool" ? without_scores(one) : one;
  };
  for (const Tree& one : tree.must) out.filter.push_back(strip(one));
  for (const Tree& one : tree.filter) out.filter.push_back(strip(one));
  for (Tree& one : out.must_not) one = strip(one);
  for (Tree& one : out.should) one = strip(one);
  if (tree.minimum == 0 && tree.must.size() + tree.filter.size() > 0) out.should.clear();
  return out;
}

std::vector<Tree> merged(const std::vector<Tree>& list) {
  std::vector<std::pair<Tree, double>> sums;
  for (Tree one : list) {
    double boost = 1;
    while (one.kind == "^") {
      boost *= one.number;
      one = Tree(one.of[0]);
    }
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first.key() == one.key(); });
    if (same == sums.end()) {
      sums.push_back({one, boost});
    } else {
      same->second += boost;
    }
  }
  if (sums.size() == list.size()) return list;
  std::vector<Tree> out;
  for (const auto& [one, boost] : sums) {
    const auto number = static_cast<float>(boost);
    out.push_back(number == 1 ? one : wrap("^", one, number));
  }
  return out;
}

Tree step_bool(const Tree& tree) {
  if (tree.clauses() == 0) return nothing();
  if (tree.clauses() == 1) {
    if (tree.minimum <= 1 && !tree.should.empty()) return tree.should[0];
    if (tree.minimum == 0 && !tree.must.empty()) return tree.must[0];
    if (tree.minimum == 0 && !tree.filter.empty()) return wrap("^", wrap("constant", tree.filter[0]), 0);
    if (tree.minimum == 0) return nothing();
  }
  Tree out = tree;
  const auto drop_none = [](std::vector<Tree>& list) {
    list.erase(std::remove_if(list.begin(), list.end(), [](const Tree& one) { return one.kind == "none"; }), list.end());
  };
  for (Tree& one : out.must) one = step(one);
  for (Tree& one : out.should) one = step(one);
  for (auto* list : {&out.filter, &out.must_not}) {
    for (Tree& one : *list) {
      one = step(wrap("constant", one));
      if (one.kind == "constant") one = Tree(one.of[0]);
    }
  }
  for (const auto* list : {&out.must, &out.filter}) {
    for (const Tree& one : *list) {
      if (one.kind == "none") return nothing();
    }
  }
  drop_none(out.should);
  drop_none(out.must_not);
  if (out.text() != tree.text()) return out;

  for (auto* list : {&out.filter, &out.must_not}) {
    std::vector<Tree> kept;
    for (const Tree& one : *list) {
      if (!holds(kept, one)) kept.push_back(one);
    }
    *list = kept;
  }
  if (out.text() != tree.text()) return out;

  for (const Tree& one : tree.must_not) {
    if (one.kind == "all" || holds(tree.must, one) || holds(tree.filter, one)) return nothing();
  }

  const bool beside_others = tree.filter.size() > 1 || !tree.must.empty();
  out.filter.clear();
  for (const Tree& one : tree.filter) {
    if (!(beside_others && one.kind == "all") && !holds(tree.must, one)) out.filter.push_back(one);
  }
  if (out.text() != tree.text()) return out;

  out = tree;
  out.should.clear();
  out.filter.clear();
  for (const Tree& one : tree.filter) {
    if (!holds(tree.should, one)) out.filter.push_back(one);
  }
  for (const Tree& one : tree.should) {
    if (holds(tree.filter, one)) {
      out.must.push_back(one);
      if (out.minimum > 0) out.minimum--;
    } else {
      out.should.push_back(one);
    }
  }
  if (out.text() != tree.text()) return out;

  if (tree.minimum <= 1) out.should = merged(tree.should);
  if (out.text() != tree.text()) return out;
  out.must = merged(tree.must);
  if (out.text() != tree.text()) return out;

  if (tree.must.size() == 1 && !tree.filter.empty()) {
    const bool boosted = tree.must[0].kind == "^";
    const Tree& must = boosted ? tree.must[0].of[0] : tree.must[0];
    if (must.kind == "all") {
      Tree inner;
      inner.kind = "bool";
      inner.filter = tree.filter;
      inner.must_not = tree.must_not;
      Tree scored = wrap("constant", inner);
      if (boosted && tree.must[0].number != 1) scored = wrap("^", scored, tree.must[0].number);
      out.filter.clear();
      out.must_not.clear();
      out.must = {scored};
      return out;
    }
  }

  if (tree.minimum <= 1) {
    out.should.clear();
    for (const Tree& one : tree.should) {
      if (one.kind == "bool" && one.clauses() == one.should.size() && one.minimum <= 1) {
        out.should.insert(out.should.end(), one.should.begin(), one.should.end());
      } else {
        out.should.push_back(one);
      }
    }
    if (out.text() != tree.text()) return out;
  }

  const auto shoulds = static_cast<int64_t>(tree.should.size());
  if (shoulds > 0 && shoulds < tree.minimum) return nothing();
  if (shoulds > 0 && shoulds == tree.minimum) {
    out.must.insert(out.must.end(), tree.should.begin(), tree.should.end());
    out.should.clear();
    out.minimum = 0;
  }
  return out;
}

Tree step(const Tree& tree) {
  if (tree.kind == "bool") return step_bool(tree);
  if (tree.kind == "max") {
    if (tree.of.empty()) return nothing();
    if (tree.of.size() == 1) return tree.of[0];
    Tree out = tree;
    if (tree.number == 1) {
      out = Tree();
      out.kind = "bool";
      out.should = tree.of;
      return out;
    }
    for (Tree& one : out.of) one = step(one);
    return out;
  }
  if (tree.kind == "constant") {
    Tree inner = step(tree.of[0]);
    if (inner.kind == "^" || inner.kind == "constant") {
      inner = Tree(inner.of[0]);
    } else if (inner.kind == "bool") {
      inner = without_scores(inner);
    }
    return inner.kind == "none" ? inner : wrap("constant", inner);
  }
  if (tree.kind == "^") {
    const Tree inner = step(tree.of[0]);
    if (tree.number == 1 || inner.kind == "none") return inner;
    if (inner.kind == "^") return wrap("^", inner.of[0], tree.number * inner.number);
    if (tree.number == 0 && inner.kind != "constant") return wrap("^", wrap("constant", inner), 0);
    return wrap("^", inner, tree.number);
  }
  return tree;
}

Tree rewritten(Tree tree) {
  for (;;) {
    Tree next = step(tree);
    if (next.text() == tree.text()) return tree;
    tree = std::move(next);
  }
}

// The terms of each field, counted directly from the texts of the live rows.
class Oracle {
 public:
  Oracle(const std::vector<Texts>& fields, const std::vector<bool>& is_live) : is_live_(is_live) {
    for (const Texts& texts : fields) {
      Counted field;
      for (size_t row = 0; row < texts.size(); row++) {
        const auto words = words_of(texts[row]);
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
    std::vector<InverseNorms> inverses;
    const Bm25 bm25 = {options.k1, options.b, options.factor_k1_plus_1};
    for (const Counted& field : fields_) {
      inverses.push_back(field.documents == 0 ? InverseNorms{} : inverse_norms(bm25, {field.documents, field.tokens}));
    }
    std::vector<Hit> hits;
    for (size_t row = 0; row < is_live_.size(); row++) {
      if (!is_live_[row] || !may_be_found[row]) continue;
      const auto score = score_of(tree, row, 1, bm25, inverses);
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
    if (tree.kind == "bool") {
      if (!std::all_of(tree.must.begin(), tree.must.end(), has) || !std::all_of(tree.filter.begin(), tree.filter.end(), has)) return false;
      const auto shoulds = std::count_if(tree.should.begin(), tree.should.end(), has);
      return shoulds >= tree.minimum && tree.must.size() + tree.filter.size() + shoulds > 0;
    }
    return std::any_of(tree.of.begin(), tree.of.end(), has);
  }

  std::optional<float> score_of(const Tree& tree, size_t row, float boost, const Bm25& bm25, const std::vector<InverseNorms>& inverses) const {
    const auto score = [&](const Tree& one) { return score_of(one, row, boost, bm25, inverses); };
    if (tree.kind == "^") return score_of(tree.of[0], row, tree.number * boost, bm25, inverses);
    if (tree.kind == "all") return boost;
    if (tree.kind == "constant") return score(tree.of[0]) ? std::optional<float>(boost) : std::nullopt;
    if (tree.kind == "term") {
      const Counted& field = fields_[tree.field];
      const auto tf = field.rows[row].find(tree.word);
      if (tf == field.rows[row].end()) return {};
      const float idf = inverse_document_frequency(field.document_frequencies.at(tree.word), field.documents);
      return term_score(term_weight(bm25, boost, idf), tf->second, inverses[tree.field][length_code(field.lengths[row])]);
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

Query random_query(std::mt19937& random, int depth, int words, int fields) {
  static const float kBoosts[] = {1, 1, 1, 1, 1, 2, 0.5f, 3.7f, 0, 1.1f};
  const float boost = kBoosts[random() % 10];
  const auto some = [&](int most) {
    std::vector<Query> queries;
    for (int i = random() % (most + 1); i > 0; i--) queries.push_back(random_query(random, depth - 1, words, fields));
    return queries;
  };
  const int choice = depth <= 0 ? random() % 4 : random() % 14;
  Query query;
  if (choice < 4) {
    if (random() % 25 == 0) return of_type(random() % 4 == 0 ? QueryType::kMatchNone : QueryType::kMatchAll, boost);
    // One word in 20 does not occur in any text.
    query = term(random() % 20 == 0 ? "absent" : "w" + std::to_string(random() % words), random() % fields);
  } else if (choice < 11) {
    query.type = QueryType::kBool;
    if (random() % 2 == 0) query.must = some(3);
    query.should = some(4);
    if (random() % 3 == 0) query.filter = some(2);
    if (random() % 4 == 0) query.must_not = some(2);
    if (random() % 2 == 0) query.minimum_should_match = random() % 4;
  } else if (choice < 13) {
    static const float kTies[] = {0, 0, 0.3f, 1};
    query = best_of(some(4), kTies[random() % 4]);
  } else {
    query = constant(random_query(random, depth - 1, words, fields));
  }
  query.boost = boost;
  return query;
}

void check_equal(const LexicalResult& result, int64_t query, const std::vector<Hit>& expected) {
  CHECK_EQUAL(result.counts[query], static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); i++) {
    CHECK_EQUAL(result.rows[query * result.k + i], expected[i].row);
    CHECK_EQUAL(bits_of(result.scores[query * result.k + i]), bits_of(expected[i].score));
  }
}

std::vector<uint64_t> bitmap_of(const std::vector<bool>& rows) {
  std::vector<uint64_t> bitmap((rows.size() + 63) / 64, 0);
  for (size_t i = 0; i < rows.size(); i++) {
    if (rows[i]) bitmap[i / 64] |= uint64_t{1} << i % 64;
  }
  return bitmap;
}

}  // namespace

TEST("query: random trees have the oracle's hits and scores, bit for bit, for any k, threads, shards, filter, deletions and pruning") {
  std::mt19937 random(5);
  ThreadPool one(1);
  ThreadPool three(3);
  const int rounds = check::small() ? 3 : 10;
  for (int round = 0; round < rounds; round++) {
    const int words = round % 3 == 0 ? 12 : 60;
    const int rows = 200 + static_cast<int>(random() % (round % 4 == 3 ? 9000 : 1200));
    const std::vector<Texts> texts = {random_texts(random, rows, words, 6), random_texts(random, rows, words, round % 2 == 0 ? 15 : 40)};
    std::vector<bool> is_live(rows, true);
    std::vector<bool> may_be_found(rows, true);
    for (int row = 0; row < rows; row++) {
      if (round % 3 == 1) is_live[row] = random() % 4 != 0;
      if (round % 2 == 1) may_be_found[row] = round % 4 == 1 ? random() % 2 == 0 : random() % 60 == 0;
    }
    std::vector<bool> both(rows);
    for (int row = 0; row < rows; row++) both[row] = is_live[row] && may_be_found[row];
    const std::vector<uint64_t> filter = bitmap_of(both);
    const auto a = build_field(texts[0], 1, is_live, random, one);
    const auto b = build_field(texts[1], 1, is_live, random, one);
    const auto cut_a = build_field(texts[0], 4, is_live, random, three);
    const auto cut_b = build_field(texts[1], 3, is_live, random, three);
    const Oracle oracle(texts, is_live);
    std::vector<Query> queries;
    for (int i = 0; i < 60; i++) queries.push_back(random_query(random, 1 + i % 4, words, 2));
    for (const int64_t k : {1, 10, 20000}) {
      LexicalOptions options;
      options.k = k;
      options.filter_bits = round % 3 == 1 || round % 2 == 1 ? filter.data() : nullptr;
      options.factor_k1_plus_1 = round % 4 == 3;
      if (round % 5 == 1) options.k1 = 0;
      if (round % 5 == 2) options.b = 1;
      const LexicalResult whole = lexical_search(Fields{&a->index, &b->index}, queries, options, one);
      const LexicalResult cut = lexical_search(Fields{&cut_a->index, &cut_b->index}, queries, options, three);
      options.prune = false;
      const LexicalResult unpruned = lexical_search(Fields{&a->index, &cut_b->index}, queries, options, three);
      options.prune = true;
      for (size_t i = 0; i < queries.size(); i++) {
        const auto expected = oracle.search(queries[i], options, may_be_found);
        check_equal(whole, i, expected);
        check_equal(cut, i, expected);
        check_equal(unpruned, i, expected);
        if (i % 10 == 0) check_equal(lexical_search(Fields{&cut_a->index, &b->index}, {queries[i]}, options, three), 0, expected);
      }
    }
  }
}

TEST("query: a single query over many windows and threads has the oracle's hits for a small k") {
  std::mt19937 random(31);
  ThreadPool one(1);
  ThreadPool three(3);
  const int rows = check::small() ? 40000 : 100000;
  const std::vector<Texts> texts = {random_texts(random, rows, 400, 5), random_texts(random, rows, 3000, 20)};
  const std::vector<bool> all(rows, true);
  const auto a = build_field(texts[0], 1, all, random, three);
  const auto b = build_field(texts[1], 2, all, random, three);
  const Oracle oracle(texts, all);
  const auto word = [&](int words) { return "w" + std::to_string(random() % words); };
  for (int round = 0; round < (check::small() ? 2 : 5); round++) {
    std::vector<Query> title, body, mixed;
    for (int i = 0; i < 6; i++) {
      const std::string one_word = word(i < 2 ? 5 : 300);
      title.push_back(term(one_word, 0));
      body.push_back(term(one_word, 1));
      mixed.push_back(best_of({term(one_word, 0, 2), term(one_word, 1)}, 0.3f));
    }
    Query filtered = any_of(body, 1);
    filtered.filter = {term(word(20), 0)};
    filtered.must_not = {term(word(20), 1)};
    Query required = all_of({term(word(5), 1), term(word(30), 0)});
    required.should = body;
    std::vector<Query> nested;
    for (int i = 0; i < 4; i++) nested.push_back(any_of({term(word(50), 0), term(word(50), 1), term(word(500), 1)}, 2, 1.5f));
    const std::vector<Query> queries = {best_of({any_of(title), any_of(body)}), best_of({any_of(title, 0, 2), any_of(body)}, 0.7f),
                                        any_of(mixed), filtered, required, any_of(nested), any_of(body, 3), random_query(random, 4, 300, 2)};
    LexicalOptions options;
    options.k = round % 2 == 0 ? 10 : 200;
    for (const Query& query : queries) {
      const auto expected = oracle.search(query, options, all);
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, one), 0, expected);
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, three), 0, expected);
    }
  }
}

TEST("query: clauses whose scores differ by more than float64 can add exactly are summed in the query's order") {
  std::mt19937 random(37);
  ThreadPool pool(2);
  const std::vector<Texts> texts = {random_texts(random, 700, 20, 30), random_texts(random, 700, 20, 10)};
  const std::vector<bool> all(700, true);
  const auto a = build_field(texts[0], 2, all, random, pool);
  const auto b = build_field(texts[1], 3, all, random, pool);
  const Oracle oracle(texts, all);
  std::vector<Query> clauses;
  for (int i = 0; i < 12; i++) {
    const std::string word = "w" + std::to_string(i);
    clauses.push_back(any_of({term(word, 0), term(word, 1)}, 0, std::ldexp(1.37f, 6 * (i % 7))));
  }
  for (const int64_t k : {3, 700}) {
    LexicalOptions options;
    options.k = k;
    for (const Query& query : {any_of(clauses), any_of(clauses, 2), all_of({clauses[0], clauses[6], clauses[3]})}) {
      check_equal(lexical_search(Fields{&a->index, &b->index}, {query}, options, pool), 0, oracle.search(query, options, all));
    }
  }
}

TEST("query: a tree that is a bag of words has the same hits as the search for bags of words") {
  std::mt19937 random(41);
  ThreadPool pool(2);
  const Texts texts = random_texts(random, 2000, 100, 30);
  const auto field = build_field(texts, 3, std::vector<bool>(2000, true), random, pool);
  LexicalOptions options;
  for (int round = 0; round < 20; round++) {
    std::string text;
    std::vector<Query> clauses;
    for (int i = 0; i < 8; i++) {
      const std::string word = "w" + std::to_string(random() % 30);
      text += word + " ";
      clauses.push_back(term(word));
    }
    const LexicalResult bag = lexical_search(field->index, {bag_of_words(Analyser::kWhitespace, text)}, options, pool);
    const LexicalResult tree = lexical_search(Fields{&field->index}, {any_of(clauses)}, options, pool);
    CHECK(bag.rows == tree.rows);
    CHECK(bag.scores == tree.scores);
    CHECK_EQUAL(bag.stats[0].postings_decoded, tree.stats[0].postings_decoded);
  }
}

TEST("query: the rewriting rules determine the last bit of the score") {
  // A spliced bool is rounded once, a boosted bool twice; must and should are rounded separately.
  std::mt19937 random(43);
  ThreadPool pool(1);
  const int rows = 3000;
  const Texts texts = random_texts(random, rows, 10, 40);
  const std::vector<bool> all(rows, true);
  const auto field = build_field(texts, 1, all, random, pool);
  const Oracle oracle({texts}, all);
  LexicalOptions options;
  options.k = rows;
  const auto scores = [&](const Query& query) {
    const LexicalResult result = lexical_search(Fields{&field->index}, {query}, options, pool);
    check_equal(result, 0, oracle.search(query, options, all));
    std::map<int64_t, uint32_t> by_row;
    for (int64_t i = 0; i < result.counts[0]; i++) by_row[result.rows[i]] = bits_of(result.scores[i]);
    return by_row;
  };
  const std::vector<Query> words = {term("w0"), term("w1"), term("w2"), term("w3"), term("w4")};
  const auto flat = scores(any_of(words));
  CHECK(flat == scores(any_of({words[0], any_of({words[1], any_of({words[2], words[3]})}, 1), words[4]})));
  CHECK(flat == scores(best_of(words, 1)));
  CHECK(scores(any_of({words[0], words[0], words[1]})) == scores(any_of({term("w0", 0, 2), words[1]})));
  CHECK(scores(any_of({words[0], words[1]}, 2)) == scores(all_of({words[0], words[1]})));
  Query both = any_of({words[3], words[4]});
  both.must = {words[0], words[1], words[2]};
  const auto rounded_apart = scores(both);
  const auto rounded_once = scores(all_of(words));
  int different = 0;
  for (const auto& [row, bits] : rounded_once) different += rounded_apart.at(row) != bits ? 1 : 0;
  CHECK(different > 0);
}

TEST("query: trees have the hits and bits that Lucene 9.12.3 gave for them") {
  // Recorded with Lucene's BM25Similarity and with Elasticsearch's factor of 1 + k1, four hits each.
  std::vector<Texts> texts(2);
  for (int row = 0; row < 60; row++) {
    const auto words = [&](int count, int salt) {
      std::string text;
      for (int j = 0; j < count; j++) text += "w" + std::to_string((row * 7 + j * j * 3 + (row * j) % 11 + salt) % 13) + " ";
      return text;
    };
    texts[0].push_back(words(row % 5, 0));
    texts[1].push_back(words(row * 5 % 17, 4));
  }
  std::mt19937 random(61);
  ThreadPool pool(2);
  const std::vector<bool> all(60, true);
  const auto title = build_field(texts[0], 2, all, random, pool);
  const auto body = build_field(texts[1], 3, all, random, pool);
  const auto t = [](int word, uint32_t field = 0, float boost = 1) { return term("w" + std::to_string(word), field, boost); };

  Query rounded_apart = all_of({t(3, 1), t(5, 1)});
  rounded_apart.should = {t(1, 1), t(8), t(2, 1, 1.5f)};
  Query minimum = all_of({t(3, 1), t(5, 1)});
  minimum.should = {t(1, 1), t(2, 1), t(8, 1)};
  minimum.minimum_should_match = 2;
  minimum.must_not = {t(0)};
  Query should_and_filter = any_of({t(3, 1), t(5, 1), t(7)});
  should_and_filter.filter = {t(3, 1)};
  Query must_of_all_rows = all_of({of_type(QueryType::kMatchAll)});
  must_of_all_rows.filter = {t(3, 1), t(5, 1)};
  must_of_all_rows.should = {t(1)};
  Query inner = all_of({t(3, 1), t(1, 1)});
  inner.should = {t(5, 1)};
  Query absent_should = all_of({t(1, 1)});
  absent_should.should = {t(3, 1), t(5, 1), term("absent")};
  absent_should.minimum_should_match = 2;
  const std::vector<Query> queries = {
      best_of({any_of({t(3), t(5)}, 0, 2), any_of({t(3, 1), t(5, 1)})}, 0.3f),
      rounded_apart,
      any_of({t(3, 1), any_of({t(5, 1), t(8, 1), t(1)}, 0, 1.3f), any_of({t(2, 1), t(4, 1)})}),
      any_of({t(3, 1), t(3, 1), t(3, 1, 2), t(5)}),
      minimum,
      should_and_filter,
      must_of_all_rows,
      any_of({inner, best_of({t(2), t(2, 1), t(7, 1)}, 0.7f), constant(t(0))}),
      absent_should,
  };
  const char* const lucene[] = {
      "13:408843ad 32:405328f6 6:4039adc5 48:4021ac2c",
      "9:401a6266 22:40002a29 6:3ffb2a40 16:3feb7bbf",
      "54:406a07e0 57:405078ca 22:4024c784 3:402419a4",
      "50:40389f8c 13:403173b2 44:40311d5e 32:402fb80c",
      "9:4027901c 54:40118064 6:40070a9b 46:3ff21326",
      "27:4008467c 54:3f9dce18 57:3f9be7c4 9:3f82596f",
      "54:3ffe8ec8 22:3febdd68 57:3febdd68 6:3f800000",
      "13:40172304 26:40136cb0 6:401093da 54:400d34c2",
      "54:3feb4944 9:3fd3267f 6:3fb51978 22:3fb24530",
  };
  const char* const elasticsearch[] = {
      "13:40f7c44d 32:40d96d39 6:40caf1d2 36:409f32e2",
      "9:40926bfd 22:4075f3c4 16:406be5a2 6:405c5120",
      "54:40d52377 57:40c3fa3e 22:40a0a0a8 49:4093336b",
      "24:40c312f9 32:40b3e830 50:40b377da 21:40a93b52",
      "9:409ef6f5 54:4086a923 6:406c82c6 46:40678f17",
      "27:407f7d5e 54:4012d03e 57:40129a1d 9:3ff0b795",
      "54:4033fc88 22:402b5fa4 57:402b5fa4 6:3f800000",
      "9:4082efda 6:4082553a 54:408128d2 59:4064c5ce",
      "54:405b6ce4 9:4047ef2a 22:402b0da0 46:4022f204",
  };
  for (const bool factor : {false, true}) {
    LexicalOptions options;
    options.k = 4;
    options.k1 = factor ? 1.2f : 0.9f;
    options.b = factor ? 0.75f : 0.4f;
    options.factor_k1_plus_1 = factor;
    const LexicalResult result = lexical_search(Fields{&title->index, &body->index}, queries, options, pool);
    for (size_t i = 0; i < queries.size(); i++) {
      std::string hits;
      for (int64_t j = 0; j < result.counts[i]; j++) {
        char hit[32];
        std::snprintf(hit, sizeof hit, "%s%d:%08x", j == 0 ? "" : " ", static_cast<int>(result.rows[i * 4 + j]), bits_of(result.scores[i * 4 + j]));
        hits += hit;
      }
      CHECK_EQUAL(hits, std::string((factor ? elasticsearch : lucene)[i]));
    }
  }
}

TEST("query: queries without a positive clause, or with only constants, match the same rows as in Lucene") {
  std::mt19937 random(47);
  ThreadPool pool(1);
  const auto field = build_field({"a b", "b", "", "a a c"}, 1, std::vector<bool>(4, true), random, pool);
  LexicalOptions options;
  const auto hits = [&](const Query& query) {
    const LexicalResult result = lexical_search(Fields{&field->index}, {query}, options, pool);
    std::string text;
    for (int64_t i = 0; i < result.counts[0]; i++) text += std::to_string(result.rows[i]) + ":" + std::to_string(result.scores[i]).substr(0, 3) + " ";
    return text;
  };
  CHECK_EQUAL(hits(of_type(QueryType::kMatchAll)), "0:1.0 1:1.0 2:1.0 3:1.0 ");
  CHECK_EQUAL(hits(of_type(QueryType::kMatchNone)), "");
  CHECK_EQUAL(hits(any_of({})), "");
  Query negative;
  negative.type = QueryType::kBool;
  negative.must_not = {term("a"), term("x")};
  CHECK_EQUAL(hits(negative), "");
  negative.filter = {of_type(QueryType::kMatchAll)};
  CHECK_EQUAL(hits(negative), "1:0.0 2:0.0 ");
  negative.must = {of_type(QueryType::kMatchAll, 2)};
  CHECK_EQUAL(hits(negative), "1:2.0 2:2.0 ");
  CHECK_EQUAL(hits(constant(term("b"), 3)), "0:3.0 1:3.0 ");
  CHECK_EQUAL(hits(any_of({term("a"), term("b")}, 3)), "");
  CHECK_EQUAL(hits(any_of({constant(term("a")), constant(term("b"))}, 2)), "0:2.0 ");
  CHECK_EQUAL(hits(best_of({constant(term("a")), constant(term("b"), 2)}, 0.5f)), "0:2.5 1:2.0 3:1.0 ");
}

TEST("query: trees that break a limit and invalid numbers are refused") {
  std::mt19937 random(53);
  ThreadPool pool(1);
  const std::vector<bool> all(4, true);
  const auto field = build_field({"a b", "b", "", "a a c"}, 1, all, random, pool);
  const auto shorter = build_field({"a"}, 1, all, random, pool);
  LexicalOptions options;
  const auto search = [&](const Query& query) { return lexical_search(Fields{&field->index}, {query}, options, pool); };
  CHECK_REFUSED(search(term("a", 1)), ErrorCode::kBadArgument, "field 1");
  CHECK_REFUSED(search(term("a", 0, -1)), ErrorCode::kBadArgument, "boost");
  CHECK_REFUSED(search(term("a", 0, std::nanf(""))), ErrorCode::kBadArgument, "boost");
  CHECK_REFUSED(search(any_of({term("a")}, -1)), ErrorCode::kBadArgument, "minimum_should_match");
  CHECK_REFUSED(search(best_of({term("a")}, 1.5f)), ErrorCode::kBadArgument, "tie_breaker");
  CHECK_REFUSED(search(of_type(QueryType::kConstantScore)), ErrorCode::kBadArgument, "constant_score");
  CHECK_REFUSED(search(any_of({any_of({term("a"), term("b")}, 0, 1e30f), term("c")}, 0, 1e30f)), ErrorCode::kBadArgument, "boosts");
  CHECK_REFUSED(search(any_of({term("a", 0, 3e38f), term("a", 0, 3e38f)})), ErrorCode::kBadArgument, "boosts");
  CHECK_REFUSED(lexical_search(Fields{}, {term("a")}, options, pool), ErrorCode::kBadArgument, "field");
  CHECK_REFUSED(lexical_search(Fields{&field->index, &shorter->index}, {term("a")}, options, pool), ErrorCode::kBadArgument, "rows");
  Query deep = term("a");
  for (int i = 1; i < kMaxQueryDepth; i++) deep = any_of({std::move(deep), term("b")}, 0, 1.01f);
  CHECK_EQUAL(search(deep).counts[0], int64_t{3});
  CHECK_REFUSED(search(any_of({deep, term("b")})), ErrorCode::kBadArgument, "nested");
  Query wide = any_of(std::vector<Query>(kMaxQueryNodes - 1, term("a")));
  CHECK_EQUAL(search(wide).counts[0], int64_t{2});
  wide.should.push_back(term("a"));
  CHECK_REFUSED(search(wide), ErrorCode::kBadArgument, "nodes");
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  CHECK_REFUSED(search(all_of({term("a"), term("b")})), ErrorCode::kCancelled, "cancel");
}

TEST("query: a damaged file is refused or answered, but the search ends") {
  std::mt19937 random(67);
  ThreadPool pool(1);
  const Texts texts = random_texts(random, 900, 40, 30);
  oracle::TempDir directory;
  const std::string path = directory.file();
  write_shard(path, texts, pool);
  const std::vector<uint8_t> bytes = oracle::read_file(path);
  std::vector<Query> queries;
  for (int i = 0; i < 12; i++) queries.push_back(random_query(random, 3, 40, 1));
  LexicalOptions options;
  options.k = 20;
  for (int i = 0; i < (check::small() ? 100 : 600); i++) {
    std::vector<uint8_t> changed = bytes;
    changed[random() % changed.size()] ^= 1 + random() % 255;
    oracle::write_file(path, changed.data(), changed.size());
    try {
      LexicalIndex index;
      index.add_shard(path);
      lexical_search(Fields{&index}, queries, options, pool);
    } catch (const trawl::Error& error) {
      CHECK(error.code == ErrorCode::kBadFile || error.code == ErrorCode::kReadFailed);
    }
  }
}

TEST("query: a hundred thousand clauses, flat or nested, end in limited time with the right hits") {
  std::mt19937 random(59);
  ThreadPool pool(2);
  const int words = check::small() ? 5000 : 100000;
  Texts texts(2000);
  for (int w = 0; w < words; w++) texts[random() % texts.size()] += "w" + std::to_string(w) + " ";
  const std::vector<bool> all(texts.size(), true);
  const auto field = build_field(texts, 2, all, random, pool);
  std::vector<Query> flat, groups, constants;
  for (int w = 0; w < words; w++) flat.push_back(term("w" + std::to_string(w)));
  for (int w = 0; w + 1 < words; w += 2) groups.push_back(best_of({flat[w], flat[w + 1]}, 0.3f));
  Query required = any_of(flat, 2);
  required.filter = {of_type(QueryType::kMatchAll)};
  // Distribute the clauses over the levels of the nesting.
  Query deep = any_of({flat[0], flat[1]});
  const int levels = kMaxQueryDepth - 2;
  for (int level = 0; level < levels; level++) {
    std::vector<Query> share(flat.begin() + words * level / levels, flat.begin() + words * (level + 1) / levels);
    share.push_back(std::move(deep));
    deep = any_of(std::move(share), level % 2, level % 3 == 0 ? 1.5f : 1);
    if (level % 4 == 1) deep.filter = {constant(any_of({flat[level], flat[level + 1], of_type(QueryType::kMatchAll)}))};
  }
  LexicalOptions options;
  options.k = 10;
  const auto start = std::chrono::steady_clock::now();
  const LexicalResult result =
      lexical_search(Fields{&field->index}, {any_of(flat), any_of(groups), required, deep, any_of(flat, words)}, options, pool);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int i = 0; i < 4; i++) CHECK_EQUAL(result.counts[i], int64_t{10});
  CHECK_EQUAL(result.counts[4], int64_t{0});
  CHECK(seconds < 60);
}
