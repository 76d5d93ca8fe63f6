// Several shards as one index. Row numbers are global: a shard's first row follows the last row of the shard before it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trawl/codes_file.hpp"
#include "trawl/metric.hpp"
#include "trawl/prefilter_file.hpp"
#include "trawl/rows.hpp"

namespace trawl {

struct Shard {
  std::shared_ptr<const Rows> rows;
  std::shared_ptr<const CodesFile> codes;          // null: searches score every exact row
  std::shared_ptr<const PrefilterFile> prefilter;  // null: the first pass reads the codes
  int64_t first_row = 0;                           // global number of local row 0; set by Index
};

// Immutable after the last add_shard() and set_live_rows(); any number of searches may share it.
class Index {
 public:
  Index(Metric metric, int64_t dimension);

  // Throws kBadFile if codes, prefilter and rows differ in count, dimension or metric, if the prefilter was made for other codes, or if
  // the bounds of one of up to 64 evenly spread rows do not hold for its vector; verify_codes() compares every row.
  void add_shard(std::shared_ptr<const Rows> rows, std::shared_ptr<const CodesFile> codes,
                 std::shared_ptr<const PrefilterFile> prefilter = nullptr);

  // Restricts every search to the rows whose bit is set: bit (row & 63) of word (row >> 6). Call it after the last add_shard().
  // Throws kBadArgument unless there are exactly ceil(rows / 64) words.
  void set_live_rows(std::vector<uint64_t> bits);

  void require_unchanged() const;  // throws kFileChanged if a file has changed since it was opened

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t rows() const { return rows_; }  // deleted rows included
  const std::vector<Shard>& shards() const { return shards_; }
  const uint64_t* live_bits() const { return has_deleted_rows_ ? live_bits_.data() : nullptr; }  // null: all rows are live

  // Bytes of the files, by how searches read them.
  int64_t resident_bytes() const;  // read as a whole by every search: prefilters, and codes of shards without a prefilter
  int64_t touched_bytes() const;   // codes of shards with a prefilter: a search reads about one row in a thousand
  int64_t mapped_bytes() const;    // exact rows: a query reads a few dozen
  // Shards whose prefilter was compared with a sample of their codes only, because the codes are of version 1.
  int64_t sampled_prefilters() const;

 private:
  Metric metric_;
  int64_t dimension_;
  int64_t rows_ = 0;
  std::vector<Shard> shards_;
  bool has_deleted_rows_ = false;
  std::vector<uint64_t> live_bits_;
};

}  // namespace trawl
