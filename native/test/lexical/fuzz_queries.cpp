// Fuzz target for trees of queries: their limits, rewriting, planning and search. The bytes are a tree in prefix notation. What is
// accepted must have the same hits with and without pruning.
#include <cmath>

#include "lexical_queries.hpp"

using namespace lexical_test;

namespace {

constexpr int kRows = 400, kWords = 30;

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  uint8_t next() { return at_ == end_ ? 0 : *at_++; }

  // One number in 256 is invalid.
  float number(float most) {
    const float valid[] = {0, 1, 1, 0.5f, 1.1f, 3.7f, 1e-30f, 1e20f};
    const float invalid[] = {-1, NAN, INFINITY, 1.5f};
    const uint8_t drawn = next();
    return drawn == 255 ? invalid[next() % 4] : std::min(valid[drawn % 8], most);
  }

  Query tree(int depth) {
    Query query;
    query.type = static_cast<QueryType>(next() % 7);
    query.boost = number(INFINITY);
    switch (query.type) {
      case QueryType::kTerm:
        query.field = next() == 255 ? 2 : next() % 2;
        query.term = "w" + std::to_string(next() % (kWords + 2));
        break;
      case QueryType::kBool:
        query.must = trees(depth);
        query.should = trees(depth);
        query.filter = trees(depth);
        query.must_not = trees(depth);
        query.minimum_should_match = next() == 255 ? -1 : next() % 4;
        break;
      case QueryType::kDisMax:
        query.tie_breaker = number(1);
        query.queries = trees(depth);
        break;
      case QueryType::kConstantScore: query.queries = trees(depth); break;
      case QueryType::kRows: read_rows(query); break;
      default: break;
    }
    return query;
  }

 private:
  // Mostly few, and none far below the limit of depth.
  std::vector<Query> trees(int depth) {
    std::vector<Query> list;
    const uint8_t drawn = next();
    for (int left = depth > kMaxQueryDepth ? 0 : drawn < 100 ? 0 : drawn % 3; left > 0; left--) list.push_back(tree(depth + 1));
    return list;
  }

  void read_rows(Query& query) {
    std::vector<bool> members(next() == 255 ? kRows + 64 : kRows);
    const int step = 1 + next();
    size_t count = 0;
    for (size_t row = next(); row < members.size(); row += step, count++) members[row] = true;
    query.rows = std::make_shared<const std::vector<uint64_t>>(bitmap_of(members));
    if (next() % 2 == 0) return;
    std::vector<float> scores(next() == 255 ? count + 1 : count);
    for (float& score : scores) score = number(INFINITY);
    query.row_scores = std::make_shared<const std::vector<float>>(std::move(scores));
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ThreadPool pool(1);
  static std::mt19937 random(7);
  static const std::vector<bool> all(kRows, true);
  static const auto title = build_field(random_texts(random, kRows, kWords, 5), 2, all, random, pool);
  static const auto body = build_field(random_texts(random, kRows, kWords, 20), 3, all, random, pool);
  Reader reader(data, size);
  QueryOptions options;
  const int64_t ks[] = {1, 3, 10, 1000};
  options.k = ks[reader.next() % 4];
  options.k1 = reader.next() % 4 == 0 ? 0 : 1.2f;
  options.b = static_cast<float>(reader.next() % 5) / 4;
  options.factor_k1_plus_1 = reader.next() % 2 == 0;
  const int64_t counts[] = {0, 0, 1, 50, 1000};
  options.count = counts[reader.next() % 5];
  if (reader.next() % 4 == 0) options.min_score = reader.number(INFINITY);
  const Query query = reader.tree(1);
  LexicalResult found[2];
  bool accepted[2] = {true, true};
  for (const bool prune : {false, true}) {
    options.prune = prune;
    try {
      found[prune] = lexical_search({&title->index, &body->index}, {query}, options, pool);
    } catch (const trawl::Error& error) {
      if (error.code != ErrorCode::kBadArgument) throw;
      accepted[prune] = false;
    }
  }
  if (accepted[0] != accepted[1] || found[0].counts != found[1].counts || found[0].rows != found[1].rows ||
      found[0].scores != found[1].scores || found[0].totals != found[1].totals) {
    __builtin_trap();
  }
  return 0;
}
