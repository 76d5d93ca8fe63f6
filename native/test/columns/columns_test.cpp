// Filters over columns, compared with a naive evaluation, and over damaged files. The sanitizer builds run this.
#include "column_files.hpp"

using namespace column_files;
using namespace oracle;
using trawl::Column;
using trawl::ErrorCode;

namespace {

// The definition of docs/filters.md.
bool passes(const RowPredicate& test, const std::vector<Cells>& columns, int64_t row) {
  const auto each = [&](const RowPredicate& inner) { return passes(inner, columns, row); };
  switch (test.type) {
    case RowPredicate::Type::kAnd: return std::all_of(test.tests.begin(), test.tests.end(), each);
    case RowPredicate::Type::kOr: return std::any_of(test.tests.begin(), test.tests.end(), each);
    case RowPredicate::Type::kNot: return !each(test.tests[0]);
    default: break;
  }
  const auto less = [](const FilterValue& a, const FilterValue& b) { return a.text != b.text ? a.text < b.text : a.number < b.number; };
  const auto equal = [&](const FilterValue& a, const FilterValue& b) { return !less(a, b) && !less(b, a); };
  const auto& values = columns[test.column][row];
  return std::any_of(values.begin(), values.end(), [&](const FilterValue& value) {
    if (test.type == RowPredicate::Type::kExists) return true;
    if (test.type == RowPredicate::Type::kIn) {
      return std::any_of(test.values.begin(), test.values.end(), [&](const FilterValue& wanted) { return equal(value, wanted); });
    }
    const bool above = !test.least.given || less(test.least.value, value) || (!test.least.open && equal(test.least.value, value));
    const bool below = !test.most.given || less(value, test.most.value) || (!test.most.open && equal(value, test.most.value));
    return above && below;
  });
}

// Changes one to three things of the file: fields of the header, elements, starts, texts, its length.
Bytes damaged(const Bytes& whole, std::mt19937& random) {
  Bytes file = whole;
  for (int left = 1 + static_cast<int>(random() % 3); left > 0; --left) {
    const size_t at = random() % 2 == 0 ? kVersion + 4 * (random() % 20) : random() % file.size();
    if (at + 8 > file.size()) continue;
    uint64_t value;
    std::memcpy(&value, file.data() + at, 8);
    const uint64_t odd[] = {0, 1, value + 1, value - 1, 2 * value, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}, random()};
    value = odd[random() % 9];
    std::memcpy(file.data() + at, &value, random() % 2 == 0 ? 8 : 1 + random() % 4);
  }
  if (random() % 8 == 0) file.resize(random() % (file.size() + 1));
  return file;
}

}  // namespace

TEST("columns: a filter lets the same rows pass as the naive evaluation, in any shards, with codes of any width") {
  std::mt19937 random(51);
  trawl::ThreadPool pool(2);
  for (int round = 0; round < (check::small() ? 20 : 200); ++round) {
    TempDir directory;
    const int64_t rows = round == 0 ? 70000 : static_cast<int64_t>(random() % 300);
    std::vector<Cells> cells;
    std::vector<Column> columns;
    for (const ColumnType type : kTypes) {
      cells.push_back(random_cells(type, rows, random() % 2 == 0, random));
      columns.emplace_back();
      const int shards = 1 + static_cast<int>(random() % 3);
      for (int s = 0; s < shards; ++s) {
        const Cells part(cells.back().begin() + rows * s / shards, cells.back().begin() + rows * (s + 1) / shards);
        const int width = type == ColumnType::kString ? 1 << random() % 3 : 1;
        columns.back().push_back(opened(directory, type, column_bytes(type, part, width)));
      }
    }
    for (int i = 0; i < (round == 0 ? 3 : 20); ++i) {
      const RowPredicate test = random_test(3, kTypes, random);
      const std::vector<uint64_t> found = rows_of(columns, test, rows, pool);
      CHECK_EQUAL(found.size(), static_cast<size_t>((rows + 63) / 64));
      for (int64_t row = 0; row < static_cast<int64_t>(64 * found.size()); ++row) {
        CHECK_EQUAL((found[row / 64] >> (row % 64) & 1) != 0, row < rows && passes(test, cells, row));
      }
    }
  }
}

TEST("columns: a damaged file is refused, or read without a fault") {
  std::mt19937 random(52);
  trawl::ThreadPool pool(1);
  TempDir directory;
  constexpr int64_t kShardRows = 130;
  int read = 0, refused = 0;
  for (int i = 0; i < (check::small() ? 1000 : 4000); ++i) {
    std::vector<Column> columns;
    try {
      for (const ColumnType type : kTypes) {
        const Bytes whole = column_bytes(type, random_cells(type, kShardRows, random() % 2 == 0, random),
                                         type == ColumnType::kString ? 1 << random() % 3 : 1);
        // Between intact shards, so that no evaluation depends on the damaged one alone.
        const auto intact = opened(directory, type, whole);
        columns.push_back({intact, opened(directory, type, damaged(whole, random)), intact});
      }
      for (int j = 0; j < 10; ++j) {
        const std::vector<uint64_t> found = rows_of(columns, random_test(2, kTypes, random), 3 * kShardRows, pool);
        CHECK_EQUAL(found.size(), size_t{(3 * kShardRows + 63) / 64});
      }
      read++;
    } catch (const trawl::Error& error) {
      CHECK(error.code == ErrorCode::kBadFile || error.code == ErrorCode::kReadFailed);
      refused++;
    }
  }
  // The damage reaches the headers and what is behind them.
  CHECK(read > 0 && refused > 0);
}

TEST("columns: a file of another type, version or size, and a file that is not a column are refused with the reason") {
  TempDir directory;
  const Bytes numbers = column_bytes(ColumnType::kNumber, {{{"", 1}}, {{"", 2}}});
  const auto refuse = [&](ColumnType type, Bytes bytes, const char* reason) {
    CHECK_REFUSED(opened(directory, type, bytes), ErrorCode::kBadFile, reason);
  };
  refuse(ColumnType::kString, numbers, "it has the type number, but the column has the type string");
  refuse(ColumnType::kNumber, Bytes(kHeaderBytes, 'x'), "it is not a column file");
  refuse(ColumnType::kNumber, Bytes(numbers.begin(), numbers.begin() + 100), "it is not a column file");
  refuse(ColumnType::kNumber, Bytes(numbers.begin(), numbers.end() - 1), "its size differs from its header");
  const Bytes texts = column_bytes(ColumnType::kString, {{{"a text", 0}}});
  refuse(ColumnType::kString, Bytes(texts.begin(), texts.end() - 1), "its size differs from its header");
  const auto with = [&](size_t at, uint8_t value) {
    Bytes changed = numbers;
    changed[at] = value;
    return changed;
  };
  refuse(ColumnType::kNumber, with(kVersion, 2), "it has version 2, but this program reads 1");
  refuse(ColumnType::kNumber, with(kType, 9), "its type or width is unknown");
  refuse(ColumnType::kNumber, with(kWidth, 4), "its type or width is unknown");
  refuse(ColumnType::kNumber, with(kRows, 200), "its size differs from its header");
  refuse(ColumnType::kNumber, with(kStarts, 64), "its size differs from its header");
  CHECK_REFUSED(ColumnFile::open("/nonexistent/column-0.bin", ColumnType::kNumber), ErrorCode::kReadFailed, "/nonexistent/column-0.bin");
  trawl::ThreadPool pool(1);
  RowPredicate exists;
  exists.type = RowPredicate::Type::kExists;
  CHECK_REFUSED(rows_of({{opened(directory, ColumnType::kNumber, numbers)}}, exists, 3, pool), ErrorCode::kBadFile,
                "a column has 2 rows, but the index has 3");
  exists.column = 1;
  CHECK_REFUSED(rows_of({{opened(directory, ColumnType::kNumber, numbers)}}, exists, 2, pool), ErrorCode::kBadArgument,
                "names a column that was not given");
}
