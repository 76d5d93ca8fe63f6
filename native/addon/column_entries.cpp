// Opens columns, and finds the rows that pass a filter.
#include <cmath>

#include "base/unchanged.hpp"
#include "entries.hpp"
#include "environment.hpp"
#include "trawl/columns.hpp"

namespace trawl_addon {

namespace {

constexpr int kMaxDepth = 200;
constexpr int64_t kMaxNodes = 1 << 18;

trawl::ColumnType type_of(const Napi::Value& value) {
  const std::string name = string_of(value, "type");
  if (name == "string") return trawl::ColumnType::kString;
  if (name == "number") return trawl::ColumnType::kNumber;
  if (name == "boolean") return trawl::ColumnType::kBoolean;
  if (name == "date") return trawl::ColumnType::kDate;
  throw bad_argument(value, "type", "'string', 'number', 'boolean' or 'date'");
}

trawl::FilterValue value_of(const Napi::Value& value) {
  trawl::FilterValue result;
  if (value.IsString()) {
    result.text = string_of(value, "value");
  } else {
    result.number = number_of(value, "value");
  }
  return result;
}

trawl::FilterBound bound_of(const Napi::Value& value) {
  trawl::FilterBound bound;
  if (value.IsUndefined()) return bound;
  const Napi::Object spec = object_of(value, "bound");
  bound.given = true;
  bound.value = value_of(spec.Get("value"));
  bound.open = boolean_of(spec.Get("open"), "open");
  return bound;
}

// `nodes` counts the tests read so far: an object that contains another one many times over is read as many times.
trawl::RowPredicate test_of(const Napi::Value& value, int depth, int64_t& nodes) {
  using Type = trawl::RowPredicate::Type;
  if (depth > kMaxDepth) throw bad_argument(value, "a test", "nested less deep");
  if (++nodes > kMaxNodes) throw bad_argument(value, "a filter", "of at most " + std::to_string(kMaxNodes) + " tests");
  const Napi::HandleScope scope(value.Env());
  const Napi::Object spec = object_of(value, "test");
  const std::string type = string_of(spec.Get("type"), "type");
  trawl::RowPredicate test;
  if (type == "and" || type == "or") {
    test.type = type == "and" ? Type::kAnd : Type::kOr;
    const Napi::Array tests = array_of(spec.Get("tests"), "tests");
    for (uint32_t i = 0; i < tests.Length(); ++i) test.tests.push_back(test_of(tests.Get(i), depth + 1, nodes));
    return test;
  }
  if (type == "not") {
    test.type = Type::kNot;
    test.tests.push_back(test_of(spec.Get("test"), depth + 1, nodes));
    return test;
  }
  test.column = static_cast<size_t>(integer_of(spec.Get("column"), "column"));
  if (type == "exists") {
    test.type = Type::kExists;
  } else if (type == "in") {
    test.type = Type::kIn;
    const Napi::Array values = array_of(spec.Get("values"), "values");
    for (uint32_t i = 0; i < values.Length(); ++i) {
      const Napi::HandleScope value_scope(value.Env());
      test.values.push_back(value_of(values.Get(i)));
    }
  } else if (type == "range") {
    test.type = Type::kRange;
    test.least = bound_of(spec.Get("least"));
    test.most = bound_of(spec.Get("most"));
  } else {
    throw bad_argument(spec.Get("type"), "type", "'and', 'or', 'not', 'exists', 'in' or 'range'");
  }
  return test;
}

}  // namespace

Napi::Value open_column(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::vector<std::string> paths = paths_of(info[1], "paths");
  const trawl::ColumnType type = type_of(info[2]);
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>&) {
    auto column = std::make_shared<trawl::Column>();
    for (const std::string& path : paths) column->push_back(trawl::ColumnFile::open(path, type));
    return deliver_handle<ColumnPointer>(std::move(column), kColumnTag);
  });
}

Napi::Value close_column(const Napi::CallbackInfo& info) {
  handle_of<ColumnPointer>(info[0], kColumnTag).object.reset();
  return info.Env().Undefined();
}

Napi::Value filter_rows(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const Napi::Array handles = array_of(info[1], "columns");
  std::vector<ColumnPointer> columns;
  for (uint32_t i = 0; i < handles.Length(); ++i) columns.push_back(handle_of<ColumnPointer>(handles.Get(i), kColumnTag).object);
  int64_t nodes = 0;
  auto test = std::make_shared<trawl::RowPredicate>(test_of(info[2], 0, nodes));
  const int64_t rows = integer_of(info[3], "rows");
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    std::vector<const trawl::Column*> given;
    for (const ColumnPointer& column : columns) given.push_back(column.get());
    const auto test_rows = [&] { return trawl::rows_that_pass(given, *test, rows, &cancel, pool()); };
    auto words = std::make_shared<std::vector<uint64_t>>(trawl::over_unchanged(test_rows, [&] {
      for (const ColumnPointer& column : columns) {
        for (const auto& file : *column) file->require_unchanged();
      }
    }));
    return [words, rows](Napi::Env env) -> Napi::Value {
      if (words->empty()) return Napi::Uint8Array::New(env, 0);
      // JavaScript gets the memory itself, in whole words, so that neither this thread nor a search copies it (request_bitmap.hpp).
      Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(env, words->data(), words->size() * sizeof(uint64_t),
                                                        [kept = words](Napi::Env, void*) mutable { kept.reset(); });
      return Napi::Uint8Array::New(env, static_cast<size_t>((rows + 7) / 8), buffer, 0);
    };
  });
}

}  // namespace trawl_addon
