// Steps of the searches for plain and for composed queries: checking options, dividing a search into tasks, merging their hits.
#pragma once
#include <cstdint>
#include <vector>

#include "base/cancel.hpp"
#include "lexical/best_rows.hpp"
#include "trawl/lexical_index.hpp"

namespace trawl::lexical {

// Throws kBadArgument (k, k1, b).
void check_options(const LexicalOptions& options);

// A range of rows that one thread searches for one query.
struct SearchTask {
  size_t query;
  int64_t begin;
  int64_t end;
};

struct TaskResult {
  std::vector<ScoredRow> best;
  LexicalStats stats;
};

// Returns one task for each query, or several if there are fewer queries than threads or more than 2^32 rows. The tasks of a
// query are adjacent.
std::vector<SearchTask> cut_into_tasks(int64_t rows, size_t queries, int64_t threads);

LexicalResult empty_result(size_t queries, int64_t k, int64_t rows);

// Merges the tasks of each query and writes its `kept` best rows to the result.
void merge_tasks(const std::vector<SearchTask>& tasks, const std::vector<TaskResult>& found, int64_t kept, LexicalResult& result);

}  // namespace trawl::lexical
