// Filters over columns, compared with a naive evaluation, and over damaged files. The sanitizer builds run this.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "oracle.hpp"
#include "trawl/columns.hpp"

using namespace oracle;
using trawl::Column;
using trawl::ColumnFile;
using trawl::ColumnType;
using trawl::ErrorCode;
using trawl::FilterValue;
using trawl::RowTest;

namespace {

constexpr ColumnType kTypes[] = {ColumnType::kString, ColumnType::kNumber, ColumnType::kBoolean, ColumnType::kDate};
using Cells = std::vector<std::vector<FilterValue>>;  // the values of each row
using Bytes = std::vector<uint8_t>;

template <typename T>
void append(Bytes& bytes, T value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

// Positions of the fields in the header.
constexpr size_t kVersion = 8, kType = 12, kRows = 16, kWidth = 40, kStarts = 48, kHeaderBytes = 128;

void append_element(Bytes& bytes, double element, int width) {
  if (width == 8) return append(bytes, element);
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(element) >> (8 * i)));
}

// The bytes of a column file, as docs/index-format.md describes them.
Bytes column_bytes(ColumnType type, const Cells& cells, int code_width = 1) {
  std::vector<std::string> texts;
  for (const auto& values : cells) {
    for (const FilterValue& value : values) texts.push_back(value.text);
  }
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (type != ColumnType::kString) texts.clear();
  const bool is_number = type == ColumnType::kNumber || type == ColumnType::kDate;
  const int width = is_number ? 8 : code_width;
  const bool multiple = std::any_of(cells.begin(), cells.end(), [](const auto& values) { return values.size() > 1; });
  Bytes starts, data, text_starts, all_texts;
  uint32_t elements = 0;
  uint64_t values_count = 0;
  for (const auto& values : cells) {
    append(starts, elements);
    values_count += values.size();
    for (const FilterValue& value : values) {
      const double code = type == ColumnType::kBoolean ? 1 + value.number
                                                       : 1.0 + static_cast<double>(std::lower_bound(texts.begin(), texts.end(), value.text) - texts.begin());
      append_element(data, is_number ? value.number : code, width);
    }
    if (!multiple && values.empty()) append_element(data, is_number ? std::numeric_limits<double>::quiet_NaN() : 0, width);
    elements += static_cast<uint32_t>(values.size());
  }
  append(starts, elements);
  for (const std::string& text : texts) {
    append(text_starts, static_cast<uint64_t>(all_texts.size()));
    all_texts.insert(all_texts.end(), text.begin(), text.end());
  }
  append(text_starts, static_cast<uint64_t>(all_texts.size()));
  if (!multiple) starts.clear();
  if (type != ColumnType::kString) text_starts.clear();

  const auto aligned = [](uint64_t size) { return (size + 63) / 64 * 64; };
  const uint64_t data_at = aligned(kHeaderBytes + starts.size()), text_starts_at = aligned(data_at + data.size());
  const uint64_t texts_at = aligned(text_starts_at + text_starts.size()), end = texts_at + all_texts.size();
  Bytes bytes;
  for (const char c : std::string("TRAWLCO\n")) bytes.push_back(static_cast<uint8_t>(c));
  append(bytes, uint32_t{1});
  append(bytes, static_cast<uint32_t>(type));
  append(bytes, static_cast<uint64_t>(cells.size()));
  append(bytes, values_count);
  append(bytes, static_cast<uint64_t>(texts.size()));
  append(bytes, static_cast<uint32_t>(width));
  append(bytes, static_cast<uint32_t>(multiple));
  for (const uint64_t place : {uint64_t{kHeaderBytes}, data_at, text_starts_at, texts_at, end}) append(bytes, place);
  const std::pair<uint64_t, const Bytes*> sections[] = {{kHeaderBytes, &starts}, {data_at, &data}, {text_starts_at, &text_starts}, {texts_at, &all_texts}};
  for (const auto& [at, content] : sections) {
    bytes.resize(at, 0);
    bytes.insert(bytes.end(), content->begin(), content->end());
  }
  return bytes;
}

FilterValue random_value(ColumnType type, std::mt19937& random) {
  const char* const texts[] = {"", "a", "aa", "b", "B", "\xc3\xa4", "\xff", "zz"};
  const double numbers[] = {-1e308, -1, 0, 0.1, 1, 2, 1e-320, 1e308};
  FilterValue value;
  if (type == ColumnType::kString) value.text = texts[random() % 8];
  if (type == ColumnType::kBoolean) value.number = random() % 2;
  if (type == ColumnType::kNumber || type == ColumnType::kDate) value.number = numbers[random() % 8];
  return value;
}

Cells random_cells(ColumnType type, int64_t rows, bool multiple, std::mt19937& random) {
  Cells cells(rows);
  for (auto& values : cells) {
    for (int left = static_cast<int>(random() % (multiple ? 4 : 2)); left > 0; --left) values.push_back(random_value(type, random));
  }
  return cells;
}

RowTest random_test(int depth, std::mt19937& random) {
  using Type = RowTest::Type;
  RowTest test;
  const auto kind = random() % (depth > 0 ? 6 : 3);
  if (kind >= 3) {
    test.type = kind == 3 ? Type::kAnd : kind == 4 ? Type::kOr : Type::kNot;
    for (size_t left = kind == 5 ? 1 : 1 + random() % 3; left > 0; --left) test.tests.push_back(random_test(depth - 1, random));
    return test;
  }
  test.type = kind == 0 ? Type::kExists : kind == 1 ? Type::kIn : Type::kRange;
  test.column = random() % 4;
  const ColumnType type = kTypes[test.column];
  if (test.type == Type::kRange && type == ColumnType::kBoolean) test.type = Type::kExists;
  const auto bound = [&] { return trawl::FilterBound{random() % 3 != 0, random_value(type, random), random() % 2 == 0}; };
  if (test.type == Type::kRange) test.least = bound(), test.most = bound();
  for (size_t left = test.type == Type::kIn ? random() % 30 : 0; left > 0; --left) test.values.push_back(random_value(type, random));
  return test;
}

// The definition of docs/filters.md.
bool passes(const RowTest& test, const std::vector<Cells>& columns, int64_t row) {
  const auto each = [&](const RowTest& inner) { return passes(inner, columns, row); };
  switch (test.type) {
    case RowTest::Type::kAnd: return std::all_of(test.tests.begin(), test.tests.end(), each);
    case RowTest::Type::kOr: return std::any_of(test.tests.begin(), test.tests.end(), each);
    case RowTest::Type::kNot: return !each(test.tests[0]);
    default: break;
  }
  const auto less = [](const FilterValue& a, const FilterValue& b) { return a.text != b.text ? a.text < b.text : a.number < b.number; };
  const auto equal = [&](const FilterValue& a, const FilterValue& b) { return !less(a, b) && !less(b, a); };
  const auto& values = columns[test.column][row];
  return std::any_of(values.begin(), values.end(), [&](const FilterValue& value) {
    if (test.type == RowTest::Type::kExists) return true;
    if (test.type == RowTest::Type::kIn) {
      return std::any_of(test.values.begin(), test.values.end(), [&](const FilterValue& wanted) { return equal(value, wanted); });
    }
    const bool above = !test.least.given || less(test.least.value, value) || (!test.least.open && equal(test.least.value, value));
    const bool below = !test.most.given || less(value, test.most.value) || (!test.most.open && equal(value, test.most.value));
    return above && below;
  });
}

std::shared_ptr<const ColumnFile> opened(TempDir& directory, ColumnType type, const Bytes& bytes) {
  const std::string path = directory.file();
  write_file(path, bytes.data(), bytes.size());
  auto file = ColumnFile::open(path, type);
  std::remove(path.c_str());
  return file;
}

std::vector<uint64_t> rows_of(const std::vector<Column>& columns, const RowTest& test, int64_t rows, trawl::ThreadPool& pool) {
  std::vector<const Column*> pointers;
  for (const Column& column : columns) pointers.push_back(&column);
  return trawl::rows_that_pass(pointers, test, rows, nullptr, pool);
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

TEST("columns: the rows that pass a filter are those of the naive evaluation, in any shards, with codes of any width") {
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
      const RowTest test = random_test(3, random);
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
  for (int i = 0; i < (check::small() ? 200 : 4000); ++i) {
    std::vector<Column> columns;
    try {
      for (const ColumnType type : kTypes) {
        const Bytes whole = column_bytes(type, random_cells(type, kShardRows, random() % 2 == 0, random), type == ColumnType::kString ? 1 << random() % 3 : 1);
        // Between intact shards, so that no evaluation depends on the damaged one alone.
        const auto intact = opened(directory, type, whole);
        columns.push_back({intact, opened(directory, type, damaged(whole, random)), intact});
      }
      for (int j = 0; j < 10; ++j) {
        const std::vector<uint64_t> found = rows_of(columns, random_test(2, random), 3 * kShardRows, pool);
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

TEST("columns: a file of another type, version or size, and one that is no column file are refused with the reason") {
  TempDir directory;
  const Bytes numbers = column_bytes(ColumnType::kNumber, {{{"", 1}}, {{"", 2}}});
  const auto refuse = [&](ColumnType type, Bytes bytes, const char* reason) {
    CHECK_REFUSED(opened(directory, type, bytes), ErrorCode::kBadFile, reason);
  };
  refuse(ColumnType::kString, numbers, "it has the type number, but the column has the type string");
  refuse(ColumnType::kNumber, Bytes(kHeaderBytes, 'x'), "it is not a column file");
  refuse(ColumnType::kNumber, Bytes(numbers.begin(), numbers.begin() + 100), "it is not a column file");
  refuse(ColumnType::kNumber, Bytes(numbers.begin(), numbers.end() - 1), "its size differs from its header");
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
  RowTest exists;
  exists.type = RowTest::Type::kExists;
  CHECK_REFUSED(rows_of({{opened(directory, ColumnType::kNumber, numbers)}}, exists, 3, pool), ErrorCode::kBadFile,
                "a column has 2 rows, but the index has 3");
  exists.column = 1;
  CHECK_REFUSED(rows_of({{opened(directory, ColumnType::kNumber, numbers)}}, exists, 2, pool), ErrorCode::kBadArgument,
                "names a column that was not given");
}
