// Evaluates a filter in blocks of rows. Within a block, each test of a column compares its elements in order into one byte a row,
// which compilers vectorise; the bytes become bits, and the other tests combine words.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/cancel.hpp"
#include "trawl/columns.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

constexpr int64_t kBlockRows = 1 << 16;
constexpr int64_t kBlockWords = kBlockRows / 64;
// Up to this many numbers are compared one after another, more by binary search.
constexpr size_t kFewNumbers = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Words = std::vector<uint64_t>;

// Codes begin at 1; 0 is a row without a value.
struct CodeTest {
  bool is_range = true;
  uint32_t first = 1, span = 0;  // the codes that pass, if they are consecutive
  std::vector<uint8_t> passes;   // else, for each code, 1 if it passes
};

// NaN is a row without a value. No comparison holds for it.
struct NumberTest {
  double least = -kInfinity, most = kInfinity;  // if `values` is empty
  std::vector<double> values;                   // sorted
  bool is_set = false;
};

CodeTest range_of_codes(int64_t begin, int64_t end) {
  CodeTest test;
  test.first = static_cast<uint32_t>(begin + 1);
  test.span = static_cast<uint32_t>(std::max<int64_t>(0, end - begin));
  return test;
}

CodeTest set_of_codes(std::vector<uint32_t> codes, int width) {
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  if (codes.empty()) return range_of_codes(0, 0);
  if (codes.back() - codes.front() + 1 == codes.size()) return range_of_codes(codes.front() - 1, codes.back());
  CodeTest test;
  test.is_range = false;
  // Codes of one and two bytes are looked up without a comparison with the size.
  const size_t size = width == 1 ? size_t{1} << 8 : width == 2 ? size_t{1} << 16 : size_t{codes.back()} + 1;
  test.passes.assign(size, 0);
  for (const uint32_t code : codes) {
    if (code < size) test.passes[code] = 1;
  }
  return test;
}

CodeTest code_test(const RowPredicate& test, const ColumnFile& file) {
  const auto everything = std::numeric_limits<uint32_t>::max() - 1;
  if (test.type == RowPredicate::Type::kExists) return range_of_codes(0, file.width() == 4 ? everything : (1 << (8 * file.width())) - 1);
  if (test.type == RowPredicate::Type::kIn) {
    std::vector<uint32_t> codes;
    for (const FilterValue& value : test.values) {
      if (file.type() == ColumnType::kBoolean) {
        codes.push_back(value.number != 0 ? 2 : 1);
        continue;
      }
      const int64_t rank = file.rank(value.text);
      if (file.has_text(rank, value.text)) codes.push_back(static_cast<uint32_t>(rank + 1));
    }
    return set_of_codes(std::move(codes), file.width());
  }
  const auto edge = [&](const FilterBound& bound, bool including) {
    const int64_t rank = file.rank(bound.value.text);
    return including && file.has_text(rank, bound.value.text) ? rank + 1 : rank;
  };
  const int64_t end = file.width() == 4 ? everything : (1 << (8 * file.width())) - 1;
  return range_of_codes(test.least.given ? edge(test.least, test.least.open) : 0, test.most.given ? edge(test.most, !test.most.open) : end);
}

NumberTest number_test(const RowPredicate& test) {
  NumberTest result;
  if (test.type == RowPredicate::Type::kIn) {
    result.is_set = true;
    for (const FilterValue& value : test.values) result.values.push_back(value.number);
    std::sort(result.values.begin(), result.values.end());
    return result;
  }
  // An open bound is the next number, so that all comparisons are closed.
  const auto closed = [](const FilterBound& bound, double direction) {
    return bound.open ? std::nextafter(bound.value.number, direction) : bound.value.number;
  };
  if (test.type == RowPredicate::Type::kRange && test.least.given) result.least = closed(test.least, kInfinity);
  if (test.type == RowPredicate::Type::kRange && test.most.given) result.most = closed(test.most, -kInfinity);
  return result;
}

// Calls passes(element) for the elements of the rows [begin, end) of a file, and writes one byte for each row.
template <typename T, typename Passes>
void test_rows(const ColumnFile& file, int64_t begin, int64_t end, uint8_t* result, Passes passes) {
  const T* const data = static_cast<const T*>(file.data());
  const uint32_t* const starts = file.starts();
  if (starts == nullptr) {
    const T* const first = data + begin;
    for (int64_t i = 0; i < end - begin; ++i) result[i] = passes(first[i]);
    return;
  }
  for (int64_t row = begin; row < end; ++row) {
    const int64_t to = std::min<int64_t>(starts[row + 1], file.elements());
    uint8_t any = 0;
    for (int64_t at = starts[row]; at < to; ++at) any |= passes(data[at]);
    result[row - begin] = any;
  }
}

template <typename T>
void test_codes(const CodeTest& test, const ColumnFile& file, int64_t begin, int64_t end, uint8_t* result) {
  if (test.is_range) {
    const uint32_t first = test.first, span = test.span;
    return test_rows<T>(file, begin, end, result, [=](T code) -> uint8_t { return uint32_t{code} - first < span; });
  }
  const uint8_t* const passes = test.passes.data();
  const size_t size = test.passes.size();
  if (sizeof(T) < 4) return test_rows<T>(file, begin, end, result, [=](T code) -> uint8_t { return passes[code]; });
  test_rows<T>(file, begin, end, result, [=](T code) -> uint8_t { return code < size ? passes[code] : 0; });
}

void test_numbers(const NumberTest& test, const ColumnFile& file, int64_t begin, int64_t end, uint8_t* result) {
  if (!test.is_set) {
    const double least = test.least, most = test.most;
    return test_rows<double>(file, begin, end, result, [=](double x) -> uint8_t { return (x >= least) & (x <= most); });
  }
  const double* const values = test.values.data();
  const size_t count = test.values.size();
  if (count > kFewNumbers) {
    return test_rows<double>(file, begin, end, result,
                             [=](double x) -> uint8_t { return x == x && std::binary_search(values, values + count, x); });
  }
  test_rows<double>(file, begin, end, result, [=](double x) -> uint8_t {
    uint8_t any = 0;
    for (size_t i = 0; i < count; ++i) any |= x == values[i];
    return any;
  });
}

// A test with what it needs of each shard.
struct Prepared {
  RowPredicate::Type type;
  std::vector<Prepared> tests;
  const Column* column = nullptr;
  std::vector<CodeTest> codes;  // one for each shard; empty if the column has numbers
  NumberTest numbers;
};

// The bitmap has a bit for each row, so `rows` must not come from the caller alone.
void check_rows(const std::vector<const Column*>& columns, int64_t rows) {
  if (columns.empty()) throw Error(ErrorCode::kBadArgument, "a filter needs a column");
  for (const Column* column : columns) {
    int64_t found = 0;
    for (const auto& file : *column) found += file->rows();
    if (found == rows) continue;
    throw Error(ErrorCode::kBadFile, "a column has " + std::to_string(found) + " rows, but the index has " + std::to_string(rows));
  }
}

Prepared prepare(const RowPredicate& test, const std::vector<const Column*>& columns) {
  Prepared prepared;
  prepared.type = test.type;
  for (const RowPredicate& each : test.tests) prepared.tests.push_back(prepare(each, columns));
  const bool combines = test.type == RowPredicate::Type::kAnd || test.type == RowPredicate::Type::kOr;
  if (test.type == RowPredicate::Type::kNot && test.tests.size() != 1) throw Error(ErrorCode::kBadArgument, "not needs one test");
  if (combines || test.type == RowPredicate::Type::kNot) return prepared;
  if (test.column >= columns.size()) throw Error(ErrorCode::kBadArgument, "a test names a column that was not given");
  prepared.column = columns[test.column];
  for (const auto& file : *prepared.column) {
    if (file->width() < 8) prepared.codes.push_back(code_test(test, *file));
  }
  if (prepared.codes.empty()) prepared.numbers = number_test(test);
  return prepared;
}

// Eight bytes of 0 or 1 become eight bits: the product moves the lowest bit of byte i to bit 56 + i.
uint8_t pack_bits(const uint8_t* bytes) {
  uint64_t eight;
  std::memcpy(&eight, bytes, 8);
  return static_cast<uint8_t>(eight * 0x0102040810204080ull >> 56);
}

class Evaluation {
 public:
  Evaluation(int64_t begin, int64_t end) : begin_(begin), end_(end), bytes_(kBlockRows, 0) {}

  Words run(const Prepared& test) {
    switch (test.type) {
      case RowPredicate::Type::kAnd:
      case RowPredicate::Type::kOr: {
        const bool all = test.type == RowPredicate::Type::kAnd;
        Words result(kBlockWords, all ? ~uint64_t{0} : 0);
        for (const Prepared& each : test.tests) {
          const Words rows = run(each);
          for (int64_t i = 0; i < kBlockWords; ++i) result[i] = all ? result[i] & rows[i] : result[i] | rows[i];
        }
        return result;
      }
      case RowPredicate::Type::kNot: {
        Words result = run(test.tests[0]);
        for (uint64_t& word : result) word = ~word;
        return result;
      }
      default: return column(test);
    }
  }

 private:
  Words column(const Prepared& test) {
    int64_t first = 0;
    for (size_t shard = 0; shard < test.column->size(); ++shard) {
      const ColumnFile& file = *(*test.column)[shard];
      const int64_t begin = std::max(begin_, first), end = std::min(end_, first + file.rows());
      if (begin < end) one_shard(test, shard, file, begin - first, end - first, bytes_.data() + (begin - begin_));
      first += file.rows();
    }
    Words words(kBlockWords, 0);
    for (int64_t i = 0; i < kBlockRows / 8; ++i) {
      words[i / 8] |= uint64_t{pack_bits(bytes_.data() + 8 * i)} << (8 * (i % 8));
    }
    return words;
  }

  static void one_shard(const Prepared& test, size_t shard, const ColumnFile& file, int64_t begin, int64_t end, uint8_t* result) {
    switch (file.width()) {
      case 1: return test_codes<uint8_t>(test.codes[shard], file, begin, end, result);
      case 2: return test_codes<uint16_t>(test.codes[shard], file, begin, end, result);
      case 4: return test_codes<uint32_t>(test.codes[shard], file, begin, end, result);
      default: return test_numbers(test.numbers, file, begin, end, result);
    }
  }

  int64_t begin_, end_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint64_t> rows_that_pass(const std::vector<const Column*>& columns, const RowPredicate& test, int64_t rows,
                                     const std::atomic<bool>* cancel, ThreadPool& pool) {
  check_rows(columns, rows);
  const Prepared prepared = prepare(test, columns);
  Words result(static_cast<size_t>(rows + 63) / 64);
  pool.run((rows + kBlockRows - 1) / kBlockRows, [&](int64_t block) {
    check_cancelled(cancel);
    const int64_t begin = block * kBlockRows, end = std::min(rows, begin + kBlockRows);
    Words words = Evaluation(begin, end).run(prepared);
    if (end % 64 != 0) words[(end - begin) / 64] &= (uint64_t{1} << (end % 64)) - 1;
    std::copy(words.begin(), words.begin() + (end - begin + 63) / 64, result.begin() + begin / 64);
  });
  return result;
}

}  // namespace trawl
