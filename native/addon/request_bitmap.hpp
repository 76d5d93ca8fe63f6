// The bitmap of a request. It is read where it lies in JavaScript's memory, on the thread of the request's job: over 21 million
// rows it has 2.6 MB, whose copy would hold up the event loop.
#pragma once
#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace trawl_addon {

// Keeps the array alive. JavaScript must neither change nor transfer its memory while the job runs. Give a copy of the pointer to
// Jobs::start as `held`, so that the array is released on the environment's thread.
class RequestBitmap {
 public:
  // Throws a TypeError if the value is not a Uint8Array of the bytes of `rows` rows.
  RequestBitmap(const Napi::Value& value, const std::string& name, int64_t rows);
  ~RequestBitmap();
  RequestBitmap(const RequestBitmap&) = delete;
  RequestBitmap& operator=(const RequestBitmap&) = delete;

  // Bit (row & 63) of word (row >> 6), for any thread. Copies to `scratch` only if the memory does not consist of whole words.
  const uint64_t* words(std::vector<uint64_t>& scratch) const;
  size_t count() const { return words_; }

 private:
  Napi::Reference<Napi::Uint8Array> array_;
  const uint8_t* bytes_;
  size_t length_, words_;
  bool has_whole_words_;
  std::thread::id thread_ = std::this_thread::get_id();
};

// For Jobs::start.
inline std::shared_ptr<void> hold(const std::shared_ptr<const RequestBitmap>& bitmap) {
  return std::const_pointer_cast<RequestBitmap>(bitmap);
}

// Null for undefined.
std::shared_ptr<const RequestBitmap> optional_bitmap(const Napi::Value& value, const std::string& name, int64_t rows);

}  // namespace trawl_addon
