// Builds the inverted index of one field of one shard from its texts.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/analyser.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl::lexical {

struct LexicalBuildSummary {
  uint64_t rows = 0;
  uint64_t documents = 0;  // rows with at least one token
  uint64_t tokens = 0;
  uint64_t terms = 0;
  uint64_t postings = 0;
};

// The pool's threads invert the texts in parts of some megabytes and write each part as a sorted run; finish() merges the runs.
// The file has the same bytes for any number of threads. Memory is limited to the parts in progress, the longest list and the
// terms. Not thread-safe.
class LexicalBuilder {
 public:
  // `path`: the file to write. The runs are <path>.run-N; finish() or the destructor removes them.
  LexicalBuilder(std::string path, Analyser analyser, ThreadPool& pool);
  ~LexicalBuilder();

  // Appends rows. `texts` contains the UTF-8 texts one after another; text i ends before byte `ends[i]`. Throws kWriteFailed,
  // kCancelled, and kBadArgument if there are more than 2^32 - 1 rows.
  void add(const char* texts, const uint64_t* ends, size_t count, const std::atomic<bool>* cancel = nullptr);

  // Writes the file and flushes it to disk. Throws kWriteFailed, kCancelled.
  LexicalBuildSummary finish(const std::atomic<bool>* cancel = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trawl::lexical
