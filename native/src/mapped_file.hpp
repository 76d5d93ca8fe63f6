// A read-only mapping of part of a file; unmapped when the last owner goes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace trawl {

class MappedFile {
 public:
  // bytes < 0 means to the end of the file. Throws kIo when the file cannot be read, kBadFile when the range is not
  // inside it. An empty range maps nothing and is fine.
  static std::shared_ptr<const MappedFile> open(const std::string& path, int64_t offset, int64_t bytes);
  // The whole file copied into anonymous memory on huge pages, where the machine has them; the page cache's own copy
  // is then let go.
  static std::shared_ptr<const MappedFile> load(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  enum class Pattern { kRandom, kSequential, kWillNeed, kHugePages };
  void advise(Pattern pattern) const;  // a hint: failure is ignored
  // Unmaps the whole pages of data()[begin, end) until they are read again. What was loaded stays.
  void release(int64_t begin, int64_t end) const;

 private:
  MappedFile() = default;
  void* mapping_ = nullptr;
  bool backed_ = false;  // by the file: what is released can be read again
  int64_t mapping_bytes_ = 0;
  const uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace trawl
