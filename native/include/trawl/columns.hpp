// The columns of a corpus, and the rows that pass a filter over them. docs/index-format.md has the format of the files
// ("column-N.bin"), docs/filters.md the meaning of a filter.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/thread_pool.hpp"

namespace trawl {

enum class ColumnType : uint32_t { kString = 1, kNumber = 2, kBoolean = 3, kDate = 4 };

class MappedFile;

// One column of one shard, mapped.
class ColumnFile {
 public:
  // Throws kReadFailed, and kBadFile, also if the file has another type.
  static std::shared_ptr<const ColumnFile> open(const std::string& path, ColumnType type);

  ColumnType type() const { return type_; }
  int64_t rows() const { return rows_; }
  int64_t bytes() const;
  void require_unchanged() const;  // throws kFileChanged if the file has changed since it was opened
  // Bytes of a value: 1, 2 or 4 of a code, 8 of a float64.
  int width() const { return width_; }
  // Null if each row has one element; else the elements of row i are [starts()[i], starts()[i + 1]). The file may be damaged, so
  // compare them with elements().
  const uint32_t* starts() const { return starts_; }
  const void* data() const { return data_; }
  int64_t elements() const { return elements_; }
  // Number of texts that are smaller, by their bytes. Its code is one larger if the column has the text.
  int64_t rank(const std::string& text) const;
  bool has_text(int64_t rank, const std::string& text) const;

 private:
  ColumnFile() = default;
  std::string text(int64_t rank) const;
  std::shared_ptr<const MappedFile> file_;
  ColumnType type_ = ColumnType::kString;
  int64_t rows_ = 0, elements_ = 0, distinct_ = 0, text_bytes_ = 0;
  int width_ = 0;
  const uint32_t* starts_ = nullptr;
  const void* data_ = nullptr;
  const uint64_t* text_starts_ = nullptr;
  const char* texts_ = nullptr;
};

// A column of an index: the files of its shards in row order, all of one type.
using Column = std::vector<std::shared_ptr<const ColumnFile>>;

// A text, or a number; 1 and 0 for true and false.
struct FilterValue {
  std::string text;
  double number = 0;
};

struct FilterBound {
  bool given = false;
  FilterValue value;
  bool open = false;  // whether the value itself lies outside
};

struct RowPredicate {
  enum class Type { kAnd, kOr, kNot, kExists, kIn, kRange };
  Type type = Type::kAnd;
  std::vector<RowPredicate> tests;  // kAnd, kOr; kNot has one
  size_t column = 0;                // kExists, kIn, kRange
  std::vector<FilterValue> values;  // kIn
  FilterBound least, most;          // kRange
};

// Bit (row & 63) of word (row >> 6) is set for the rows that pass; bits past `rows` are 0. Throws kBadArgument, kCancelled, and
// kBadFile if a column does not have `rows` rows.
std::vector<uint64_t> rows_that_pass(const std::vector<const Column*>& columns, const RowPredicate& test, int64_t rows,
                                     const std::atomic<bool>* cancel, ThreadPool& pool);

}  // namespace trawl
