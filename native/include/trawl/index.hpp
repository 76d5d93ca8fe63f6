// Several shards as one index: row numbers run on from shard to shard.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trawl/codes_file.hpp"
#include "trawl/metric.hpp"
#include "trawl/rows.hpp"
#include "trawl/screen_file.hpp"

namespace trawl {

struct Shard {
  std::shared_ptr<const Rows> rows;         // required
  std::shared_ptr<const CodesFile> codes;   // absent: this shard is searched exactly, row by row
  std::shared_ptr<const ScreenFile> screen;  // absent: the first pass reads the codes
  int64_t first_row = 0;                    // global number of local row 0; set by Index
};

// Immutable once built; any number of searches may share it.
class Index {
 public:
  Index(Metric metric, int64_t dimension);

  // Throws kBadFile when codes and rows disagree in count, dimension or metric.
  void add_shard(std::shared_ptr<const Rows> rows, std::shared_ptr<const CodesFile> codes,
                 std::shared_ptr<const ScreenFile> screen = nullptr);

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t rows() const { return rows_; }
  const std::vector<Shard>& shards() const { return shards_; }

  int64_t resident_bytes() const;  // screens, codes where there is no screen: what wants to stay in memory
  int64_t touched_bytes() const;   // codes behind a screen: about one row in a thousand is read
  int64_t mapped_bytes() const;    // exact rows: touched a few dozen at a time

 private:
  Metric metric_;
  int64_t dimension_;
  int64_t rows_ = 0;
  std::vector<Shard> shards_;
};

}  // namespace trawl
