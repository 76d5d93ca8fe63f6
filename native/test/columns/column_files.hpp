// Column files as docs/index-format.md describes them, of random values, and random filters over them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "oracle.hpp"
#include "trawl/columns.hpp"

namespace column_files {

using trawl::ColumnFile;
using trawl::ColumnType;
using trawl::FilterValue;
using trawl::RowPredicate;

const std::vector<ColumnType> kTypes = {ColumnType::kString, ColumnType::kNumber, ColumnType::kBoolean, ColumnType::kDate};
using Cells = std::vector<std::vector<FilterValue>>;  // the values of each row
using Bytes = std::vector<uint8_t>;

template <typename T>
void append(Bytes& bytes, T value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

// Positions of the fields in the header.
constexpr size_t kVersion = 8, kType = 12, kRows = 16, kWidth = 40, kStarts = 48, kHeaderBytes = 128;

inline void append_element(Bytes& bytes, double element, int width) {
  if (width == 8) return append(bytes, element);
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(element) >> (8 * i)));
}

// The bytes of a column file, as docs/index-format.md describes them.
inline Bytes column_bytes(ColumnType type, const Cells& cells, int code_width = 1) {
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
      const double code = type == ColumnType::kBoolean
                              ? 1 + value.number
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
  const std::pair<uint64_t, const Bytes*> sections[] = {
      {kHeaderBytes, &starts}, {data_at, &data}, {text_starts_at, &text_starts}, {texts_at, &all_texts}};
  for (const auto& [at, content] : sections) {
    bytes.resize(at, 0);
    bytes.insert(bytes.end(), content->begin(), content->end());
  }
  return bytes;
}

inline FilterValue random_value(ColumnType type, std::mt19937& random) {
  const char* const texts[] = {"", "a", "aa", "b", "B", "\xc3\xa4", "\xff", "zz"};
  const double numbers[] = {-1e308, -1, 0, 0.1, 1, 2, 1e-320, 1e308};
  FilterValue value;
  if (type == ColumnType::kString) value.text = texts[random() % 8];
  if (type == ColumnType::kBoolean) value.number = random() % 2;
  if (type == ColumnType::kNumber || type == ColumnType::kDate) value.number = numbers[random() % 8];
  return value;
}

inline Cells random_cells(ColumnType type, int64_t rows, bool multiple, std::mt19937& random) {
  Cells cells(rows);
  for (auto& values : cells) {
    for (int left = static_cast<int>(random() % (multiple ? 4 : 2)); left > 0; --left) values.push_back(random_value(type, random));
  }
  return cells;
}

// A filter over columns of these types.
inline RowPredicate random_test(int depth, const std::vector<ColumnType>& types, std::mt19937& random) {
  using Type = RowPredicate::Type;
  RowPredicate test;
  const auto kind = random() % (depth > 0 ? 6 : 3);
  if (kind >= 3) {
    test.type = kind == 3 ? Type::kAnd : kind == 4 ? Type::kOr : Type::kNot;
    for (size_t left = kind == 5 ? 1 : 1 + random() % 3; left > 0; --left) test.tests.push_back(random_test(depth - 1, types, random));
    return test;
  }
  test.type = kind == 0 ? Type::kExists : kind == 1 ? Type::kIn : Type::kRange;
  test.column = random() % types.size();
  const ColumnType type = types[test.column];
  if (test.type == Type::kRange && type == ColumnType::kBoolean) test.type = Type::kExists;
  const auto bound = [&] { return trawl::FilterBound{random() % 3 != 0, random_value(type, random), random() % 2 == 0}; };
  if (test.type == Type::kRange) test.least = bound(), test.most = bound();
  for (size_t left = test.type == Type::kIn ? random() % 30 : 0; left > 0; --left) test.values.push_back(random_value(type, random));
  return test;
}

inline std::shared_ptr<const ColumnFile> opened(oracle::TempDir& directory, ColumnType type, const Bytes& bytes) {
  const std::string path = directory.file();
  oracle::write_file(path, bytes.data(), bytes.size());
  auto file = ColumnFile::open(path, type);
  std::remove(path.c_str());
  return file;
}

inline std::vector<uint64_t> rows_of(const std::vector<trawl::Column>& columns, const RowPredicate& test, int64_t rows,
                                     trawl::ThreadPool& pool) {
  std::vector<const trawl::Column*> pointers;
  for (const trawl::Column& column : columns) pointers.push_back(&column);
  return trawl::rows_that_pass(pointers, test, rows, nullptr, pool);
}

}  // namespace column_files
