#include "arguments.hpp"

#include <cmath>
#include <cstring>

namespace trawl_addon {

namespace {

std::string described(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined: return "undefined";
    case napi_null: return "null";
    case napi_boolean:
    case napi_number: return value.ToString().Utf8Value();
    case napi_string: return "'" + value.As<Napi::String>().Utf8Value() + "'";
    case napi_symbol: return "a symbol";
    case napi_function: return "a function";
    case napi_bigint: return "a bigint";
    default: return value.IsArray() ? "an array" : value.IsTypedArray() ? "another typed array" : "an object";
  }
}

}  // namespace

Napi::TypeError bad_argument(const Napi::Value& value, const std::string& name, const std::string& expected) {
  Napi::TypeError error = Napi::TypeError::New(value.Env(), name + " must be " + expected + ", not " + described(value) + ".");
  error.Set("code", Napi::String::New(value.Env(), "BAD_ARGUMENT"));
  return error;
}

int64_t integer_of(const Napi::Value& value, const std::string& name, int64_t least, int64_t most) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  // Check the range first: converting a double outside int64 is undefined.
  const bool fits = value.IsNumber() && number >= static_cast<double>(least) && number <= static_cast<double>(most) &&
                    number == static_cast<double>(static_cast<int64_t>(number));
  if (!fits) {
    throw bad_argument(value, name, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<int64_t>(number);
}

std::string string_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsString()) throw bad_argument(value, name, "a string");
  return value.As<Napi::String>().Utf8Value();
}

std::string path_of(const Napi::Value& value, const std::string& name) {
  std::string path = string_of(value, name);
  if (path.find('\0') != std::string::npos) throw bad_argument(value, name, "a path without the character NUL");
  return path;
}

std::vector<std::string> paths_of(const Napi::Value& value, const std::string& name) {
  const Napi::Array list = array_of(value, name);
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::HandleScope scope(value.Env());
    paths.push_back(path_of(list.Get(i), name));
  }
  return paths;
}

int64_t dimension_of(const Napi::Value& value) { return integer_of(value, "dimension", 1, trawl::kMaxDimension); }

Napi::Object object_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsObject()) throw bad_argument(value, name, "an object");
  return value.As<Napi::Object>();
}

Napi::Array array_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsArray()) throw bad_argument(value, name, "an array");
  return value.As<Napi::Array>();
}

bool boolean_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsBoolean()) throw bad_argument(value, name, "true or false");
  return value.As<Napi::Boolean>().Value();
}

double number_of(const Napi::Value& value, const std::string& name) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
  if (!std::isfinite(number)) throw bad_argument(value, name, "a finite number");
  return number;
}

Napi::Float64Array doubles_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float64_array) {
    throw bad_argument(value, name, "a Float64Array");
  }
  return value.As<Napi::Float64Array>();
}

Napi::Float32Array floats_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
    throw bad_argument(value, name, "a Float32Array");
  }
  return value.As<Napi::Float32Array>();
}

Napi::Uint8Array bytes_of(const Napi::Value& value, const std::string& name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    throw bad_argument(value, name, "a Uint8Array");
  }
  return value.As<Napi::Uint8Array>();
}

trawl::Metric metric_of(const Napi::Value& value) {
  const std::string name = string_of(value, "metric");
  if (name == "inner-product") return trawl::Metric::kInnerProduct;
  if (name == "l2") return trawl::Metric::kSquaredL2;
  if (name == "cosine") return trawl::Metric::kCosine;
  throw bad_argument(value, "metric", "'inner-product', 'l2' or 'cosine'");
}

RowsSpec rows_of(const Napi::Value& value, int64_t dimension) {
  const Napi::Object spec = object_of(value, "rows");
  const std::string dtype = string_of(spec.Get("dtype"), "dtype");
  if (dtype != "float32" && dtype != "float16") throw bad_argument(spec.Get("dtype"), "dtype", "'float32' or 'float16'");
  const Napi::Array segments = array_of(spec.Get("segments"), "segments");
  std::vector<trawl::RowSegment> list;
  for (uint32_t i = 0; i < segments.Length(); ++i) {
    const Napi::HandleScope scope(value.Env());
    const Napi::Object segment = object_of(segments.Get(i), "segment");
    list.push_back({path_of(segment.Get("path"), "path"), integer_of(segment.Get("offset"), "offset"),
                    integer_of(segment.Get("bytes"), "bytes"), !segment.Get("adopted").IsUndefined()});
  }
  return {std::move(list), dtype == "float16" ? trawl::RowType::kFloat16 : trawl::RowType::kFloat32, integer_of(spec.Get("rows"), "rows"),
          dimension};
}

Napi::Uint8Array bitmap_bytes_of(const Napi::Value& value, const std::string& name, int64_t rows) {
  const Napi::Uint8Array bytes = bytes_of(value, name);
  const auto expected = static_cast<size_t>((rows + 7) / 8);
  if (bytes.ElementLength() != expected) {
    throw bad_argument(value, name,
                       "a bitmap of " + std::to_string(expected) + " bytes (" + std::to_string(bytes.ElementLength()) + " given)");
  }
  return bytes;
}

std::vector<uint64_t> bitmap_of(const Napi::Value& value, const std::string& name, int64_t rows) {
  const Napi::Uint8Array bytes = bitmap_bytes_of(value, name, rows);
  std::vector<uint64_t> words(static_cast<size_t>(rows + 63) / 64);
  if (!words.empty()) std::memcpy(words.data(), bytes.Data(), bytes.ByteLength());
  return words;
}

}  // namespace trawl_addon
