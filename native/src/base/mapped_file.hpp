// A read-only mapping of part of a file. The destructor unmaps it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/os.hpp"

namespace trawl {

class MappedFile {
 public:
  // Maps `bytes` bytes of the file from `offset` on; bytes < 0: to the end of the file. An empty range maps nothing.
  // Throws kReadFailed if the file cannot be opened or mapped, kBadFile if the range is not inside it.
  static std::shared_ptr<const MappedFile> open(const std::string& path, int64_t offset, int64_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  using Pattern = os::Advice;
  void advise(Pattern pattern) const;  // a hint for the operating system; failures are ignored
  // Removes the pages that lie entirely in data()[begin, end) from resident memory. They can be read again.
  void release(int64_t begin, int64_t end) const;

 private:
  MappedFile() = default;
  const void* mapping_ = nullptr;
  int64_t mapping_bytes_ = 0;
  const uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace trawl
