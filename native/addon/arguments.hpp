// Checked conversions of JavaScript values. If the type or the range is wrong, they throw a TypeError with the code BAD_ARGUMENT
// that names the argument, the expected value and the actual one.
#pragma once
#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/metric.hpp"
#include "trawl/rows.hpp"

namespace trawl_addon {

constexpr int64_t kMaxSafeInteger = 9007199254740991;

Napi::TypeError bad_argument(const Napi::Value& value, const std::string& name, const std::string& expected);

int64_t integer_of(const Napi::Value& value, const std::string& name, int64_t least = 0, int64_t most = kMaxSafeInteger);
std::string string_of(const Napi::Value& value, const std::string& name);
// A path without the character NUL, where the operating system would end it.
std::string path_of(const Napi::Value& value, const std::string& name);
std::vector<std::string> paths_of(const Napi::Value& value, const std::string& name);
// The number of values of a vector.
int64_t dimension_of(const Napi::Value& value);
Napi::Object object_of(const Napi::Value& value, const std::string& name);
Napi::Array array_of(const Napi::Value& value, const std::string& name);
bool boolean_of(const Napi::Value& value, const std::string& name);
// A finite number.
double number_of(const Napi::Value& value, const std::string& name);
// Returns the array without a copy. JavaScript owns its memory: read it before the call returns.
Napi::Float64Array doubles_of(const Napi::Value& value, const std::string& name);
Napi::Float32Array floats_of(const Napi::Value& value, const std::string& name);
Napi::Uint8Array bytes_of(const Napi::Value& value, const std::string& name);
// 'inner-product', 'l2' or 'cosine'.
trawl::Metric metric_of(const Napi::Value& value);
// {rows, dtype: 'float32' | 'float16', segments: [{path, offset, bytes, adopted?}]}. map() opens the files, on any thread.
struct RowsSpec {
  std::vector<trawl::RowSegment> segments;
  trawl::RowType type;
  int64_t rows, dimension;
  std::shared_ptr<const trawl::Rows> map() const { return std::make_shared<const trawl::Rows>(segments, type, rows, dimension); }
};
RowsSpec rows_of(const Napi::Value& value, int64_t dimension);
// The bytes of a bitmap with bit row % 8 of byte row / 8. Throws a TypeError for another number of bytes.
Napi::Uint8Array bitmap_bytes_of(const Napi::Value& value, const std::string& name, int64_t rows);
// The same as 64-bit words.
std::vector<uint64_t> bitmap_of(const Napi::Value& value, const std::string& name, int64_t rows);

}  // namespace trawl_addon
