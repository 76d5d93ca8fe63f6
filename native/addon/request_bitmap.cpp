#include "request_bitmap.hpp"

#include <cstring>

#include "arguments.hpp"

namespace trawl_addon {

RequestBitmap::RequestBitmap(const Napi::Value& value, const std::string& name, int64_t rows)
    : words_(static_cast<size_t>(rows + 63) / 64) {
  const Napi::Uint8Array array = bitmap_bytes_of(value, name, rows);
  bytes_ = array.Data();
  length_ = array.ByteLength();
  const size_t behind = array.ArrayBuffer().ByteLength() - array.ByteOffset();
  has_whole_words_ = behind >= words_ * sizeof(uint64_t) && reinterpret_cast<uintptr_t>(bytes_) % alignof(uint64_t) == 0;
  array_ = Napi::Persistent(array);
}

RequestBitmap::~RequestBitmap() {
  // The last holder may be a job that was stopped with its environment; the environment then frees the reference itself.
  if (std::this_thread::get_id() != thread_) array_.SuppressDestruct();
}

const uint64_t* RequestBitmap::words(std::vector<uint64_t>& scratch) const {
  if (has_whole_words_) return reinterpret_cast<const uint64_t*>(bytes_);
  scratch.assign(words_, 0);
  if (length_ > 0) std::memcpy(scratch.data(), bytes_, length_);
  return scratch.data();
}

std::shared_ptr<const RequestBitmap> optional_bitmap(const Napi::Value& value, const std::string& name, int64_t rows) {
  if (value.IsUndefined()) return nullptr;
  return std::make_shared<const RequestBitmap>(value, name, rows);
}

}  // namespace trawl_addon
