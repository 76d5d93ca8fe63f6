#include "lexical/search_tasks.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "trawl/error.hpp"
#include "trawl/sizes.hpp"

namespace trawl::lexical {
namespace {

// A single query is divided into ranges of at least this many rows per thread.
constexpr int64_t kMinRowsPerThread = 1 << 15;
constexpr int64_t kMaxRowsPerTask = int64_t{1} << 32;

}  // namespace

void check_options(const LexicalOptions& options) {
  if (options.k < 1) throw Error(ErrorCode::kBadArgument, "k must be at least 1, but is " + std::to_string(options.k));
  if (!(options.k1 >= 0) || !std::isfinite(options.k1)) {
    throw Error(ErrorCode::kBadArgument, "k1 must be a number of at least 0, but is " + std::to_string(options.k1));
  }
  if (!(options.b >= 0) || !(options.b <= 1)) {
    throw Error(ErrorCode::kBadArgument, "b must be from 0 to 1, but is " + std::to_string(options.b));
  }
}

std::vector<SearchTask> cut_into_tasks(int64_t rows, size_t queries, int64_t threads) {
  int64_t parts = 1;
  if (queries < static_cast<size_t>(threads)) {
    parts = std::max<int64_t>(1, std::min<int64_t>(threads, rows / kMinRowsPerThread));
  }
  parts = std::max(parts, (rows + kMaxRowsPerTask - 1) / kMaxRowsPerTask);
  std::vector<SearchTask> tasks;
  for (size_t query = 0; query < queries; query++) {
    for (int64_t part = 0; part < parts; part++) {
      tasks.push_back({query, rows * part / parts, rows * (part + 1) / parts});
    }
  }
  return tasks;
}

LexicalResult empty_result(size_t queries, int64_t k, int64_t rows) {
  LexicalResult result;
  result.queries = static_cast<int64_t>(queries);
  result.k = hit_places(result.queries, k, rows);
  result.counts.assign(queries, 0);
  result.rows.assign(queries * result.k, -1);
  result.scores.assign(queries * result.k, 0);
  result.stats.assign(queries, {});
  return result;
}

void merge_tasks(const std::vector<SearchTask>& tasks, const std::vector<TaskResult>& found, int64_t kept, LexicalResult& result) {
  for (size_t i = 0; i < tasks.size();) {
    const size_t query = tasks[i].query;
    std::vector<ScoredRow> all;
    const size_t first = i;
    for (; i < tasks.size() && tasks[i].query == query; i++) {
      all.insert(all.end(), found[i].best.begin(), found[i].best.end());
      result.stats[query].postings = std::max(result.stats[query].postings, found[i].stats.postings);
      result.stats[query].postings_decoded += found[i].stats.postings_decoded;
    }
    if (i - first > 1) std::sort(all.begin(), all.end(), is_better);
    const auto count = std::min<int64_t>(kept, static_cast<int64_t>(all.size()));
    result.counts[query] = count;
    for (int64_t j = 0; j < count; j++) {
      result.rows[query * result.k + j] = all[j].row;
      result.scores[query * result.k + j] = all[j].score;
    }
  }
}

}  // namespace trawl::lexical
