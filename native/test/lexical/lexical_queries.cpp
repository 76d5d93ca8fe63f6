#include "lexical_queries.hpp"

#include <algorithm>
#include <map>

namespace lexical_test {

Query random_query(std::mt19937& random, int depth, int words, int fields, const std::vector<RowBits>& sets) {
  static const float kBoosts[] = {1, 1, 1, 1, 1, 2, 0.5f, 3.7f, 0, 1.1f};
  const float boost = kBoosts[random() % 10];
  const auto some = [&](int most) {
    std::vector<Query> queries;
    for (int i = random() % (most + 1); i > 0; i--) queries.push_back(random_query(random, depth - 1, words, fields, sets));
    return queries;
  };
  const int choice = depth <= 0 ? random() % 4 : random() % 14;
  Query query;
  if (choice < 4) {
    if (random() % 25 == 0) return of_type(random() % 4 == 0 ? QueryType::kMatchNone : QueryType::kMatchAll, boost);
    if (!sets.empty() && random() % 6 == 0) {
      query = of_type(QueryType::kRows, boost);
      query.rows = sets[random() % sets.size()];
      // The same sets with the same scores come again, and are then equal.
      static std::map<std::pair<const void*, uint32_t>, RowScores> known;
      const uint32_t seed = random() % 3;
      if (seed > 0) {
        RowScores& scores = known[{query.rows.get(), seed}];
        size_t count = 0;
        for (const uint64_t word : *query.rows) count += static_cast<size_t>(__builtin_popcountll(word));
        if (scores == nullptr || scores->size() != count) {
          std::vector<float> made(count);
          for (float& score : made) score = static_cast<float>(random() % 1000) / 300;
          scores = std::make_shared<const std::vector<float>>(std::move(made));
        }
        query.row_scores = scores;
      }
      return query;
    }
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
    query = constant(random_query(random, depth - 1, words, fields, sets));
  }
  query.boost = boost;
  return query;
}

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
    build(path, Texts(texts.begin() + first, texts.begin() + end), Analyser::kWhitespace, pool);
    field->index.add_shard(path);
    first = end;
  }
  Texts deleted;
  for (size_t i = 0; i < texts.size(); i++) {
    if (!is_live[i]) deleted.push_back(texts[i]);
  }
  if (deleted.empty()) return field;
  const std::string path = field->directory.file();
  build(path, deleted, Analyser::kWhitespace, pool);
  field->index.set_deleted(path);
  return field;
}

}  // namespace lexical_test
