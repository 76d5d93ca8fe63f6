// Scores that lie beside a rounding boundary: there the order of addition decides whether a row is a hit, so a bound that is one rounding
// too small loses it.
#include <array>
#include <cmath>

#include "lexical/similarity.hpp"
#include "lexical_oracle.hpp"
#include "lexical_queries.hpp"

using namespace lexical_test;

namespace {

// With these, a posting of tf 1 has the score weight / 2.
LexicalOptions halving_options() {
  LexicalOptions options;
  options.k1 = 1;
  options.b = 0;
  return options;
}

// The boost for which a term that `frequency` of `documents` rows have has the score; 0: there is none.
float boost_for(double score, uint64_t frequency, uint64_t documents) {
  const float idf = inverse_document_frequency(frequency, documents);
  float boost = static_cast<float>(2 * score / idf);
  for (int i = 0; i < 4; i++) boost = std::nextafter(boost, 0.0f);
  for (int i = 0; i < 8; i++, boost = std::nextafter(boost, INFINITY)) {
    if (boost * idf == static_cast<float>(2 * score)) return boost;
  }
  return 0;
}

// Terms "s0", "s1", ... with these scores, in an index of `documents` rows.
struct Scored {
  uint64_t documents;
  BagOfWords terms;
  std::string text;  // of the row that has all of them
};

// `in_two`: another row has the first term, too.
Scored terms_with(const std::vector<double>& scores, bool in_two) {
  for (uint64_t documents = 3; documents < 1000; documents++) {
    Scored found = {documents, {}, ""};
    for (size_t i = 0; i < scores.size(); i++) {
      const float boost = boost_for(scores[i], in_two && i == 0 ? 2 : 1, documents);
      if (boost == 0) break;
      found.terms.push_back({"s" + std::to_string(i), boost});
      found.text += found.terms.back().term + " ";
    }
    if (found.terms.size() == scores.size()) return found;
  }
  throw std::runtime_error("no number of rows has boosts for these scores");
}

constexpr double kUnit = 0x1p-52;           // between float64 from 1 on
constexpr float kNextOfOne = 1 + 0x1p-23f;  // 1 + 2^-24 is in the middle between 1 and this, and is rounded to 1
// Added in this order, each of the last four is rounded up, and the sum is one unit above the middle. Added from the smallest on, nothing
// is rounded, and the sum is the middle. The largest score is less than 2^53 times the smallest one, but not than its last place.
const std::vector<double> kRoundedUp = {1, 0x1p-24 - 0x1p-47, 13 * kUnit, 4.75 * kUnit, 4.75 * kUnit, 4.75 * kUnit, 4.75 * kUnit};

// The row with all terms must be the only one with a score of at least `least`.
void check_only_hit(const Scored& scored, const Query& query, float least) {
  ThreadPool pool(1);
  Texts texts(scored.documents, "other");
  texts[1] = scored.text;
  const auto built = build_shards(texts, 1, pool);
  QueryOptions options = halving_options();
  options.min_score = least;
  check_equal(lexical_search({&built->index}, {query}, options, pool), 0, {{least, 1}});
}

std::vector<Query> terms_of(const Scored& scored) {
  std::vector<Query> terms;
  for (const WeightedTerm& each : scored.terms) terms.push_back(term(each.term, 0, each.boost));
  return terms;
}

}  // namespace

TEST("lexical: a row whose sum is larger in the order of the query than in the order of the bounds is found") {
  const Scored scored = terms_with(kRoundedUp, /*in_two=*/true);
  // The first shard has a row with the score 1, so a later row must have a larger one.
  Texts first(scored.documents - 1, "other");
  first[0] = "s0";
  const Texts second = {scored.text};
  ThreadPool pool(1);
  Shards shards;
  Texts all = first;
  all.push_back(scored.text);
  for (const Texts& texts : {first, second}) {
    const std::string path = shards.directory.file();
    build(path, texts, Analyser::kWhitespace, pool);
    shards.index.add_shard(path);
  }
  LexicalOptions options = halving_options();
  options.k = 1;
  const std::vector<Hit> expected = {{kNextOfOne, static_cast<int64_t>(first.size())}};
  check_equal(lexical_search(shards.index, {scored.terms}, options, pool), 0, expected);
  CHECK_EQUAL(Oracle(all).search(scored.terms, options)[0].row, expected[0].row);
}

TEST("query: a row whose sum is larger in the order of the clauses than in the order of the bounds is found") {
  const Scored rounded_up = terms_with(kRoundedUp, false);
  check_only_hit(rounded_up, all_of(terms_of(rounded_up)), kNextOfOne);
  check_only_hit(rounded_up, any_of(terms_of(rounded_up)), kNextOfOne);
  // The other scores of a dis_max are summed without its largest one, which leaves no room for the last digits of their sum.
  std::vector<double> scores(14, 0.375 * kUnit);
  scores[0] = 1;
  scores[1] = 0x1p-23;
  const Scored small = terms_with(scores, false);
  check_only_hit(small, best_of(terms_of(small), 0.5f), kNextOfOne);
  // Half of their sum, added to 1, lies in the middle between two float64. In this order, but not from the smallest on, the last four are
  // rounded up.
  constexpr double unit = 0x1p-75;
  const std::vector<double> halved = {1, 0x1p-23, 0x1p-52 - 32 * unit, 13 * unit, 4.75 * unit, 4.75 * unit, 4.75 * unit, 4.75 * unit};
  const Scored tied = terms_with(halved, false);
  check_only_hit(tied, best_of(terms_of(tied), 0.5f), kNextOfOne);
  // The scores of must and of should are rounded one by one, and so is their sum.
  const Scored apart = terms_with({1, 3 * 0x1p-25, 0x1p-24}, false);
  const std::vector<Query> terms = terms_of(apart);
  Query query = all_of({terms[0], terms[1]});
  query.should = {terms[2]};
  check_only_hit(apart, query, 1 + 0x1p-22f);
}
