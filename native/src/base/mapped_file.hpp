// Files that are read while they are open for long: what they were when they were opened, and mappings of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/os.hpp"

namespace trawl {

// Whose the file is. A file of an index is replaced or removed when the index changes on the disk; what is open keeps its content. A file
// of others has no such reason to change.
enum class Owner { kIndex, kOthers };

class WatchedFile {
 public:
  // The file that is open as `file`.
  WatchedFile(const std::string& path, os::File file, Owner owner);
  ~WatchedFile();
  WatchedFile(const WatchedFile&) = delete;
  WatchedFile& operator=(const WatchedFile&) = delete;
  // Watches a file of an index or a model that another library has opened. On Linux, the library's mappings are guarded, too: all that
  // exist now. Throws kReadFailed.
  static std::shared_ptr<const WatchedFile> of_library(const std::string& path);

  const std::string& path() const { return path_; }
  // Throws kFileChanged if the file is not what it was when it was opened: truncated, written to, unreadable, or, if it belongs to others,
  // replaced or removed. Costs one look at the file's metadata.
  void require_unchanged() const;
  // The same for pages of a guarded mapping that could not be read, without a look at the file.
  void require_readable() const;
  // Throws kFileChanged for what the file contains.
  [[noreturn]] void changed(const std::string& what) const;

  // Without the guard, a page that cannot be read ends the process.
  void guard(const void* mapping, int64_t bytes);

 private:
  std::string problem(Owner owner) const;  // empty: none
  std::string path_;
  Owner owner_;
  os::Identity opened_ = {};
  std::atomic<bool> lost_{false};  // whether pages of a mapping could not be read; who reads them finds zeros
  std::vector<const void*> guarded_;
};

// A read-only mapping of part of a file. The destructor unmaps it.
class MappedFile {
 public:
  // Maps `bytes` bytes of the file from `offset` on; bytes < 0: to the end of the file. An empty range maps nothing.
  // Throws kReadFailed if the file cannot be opened or mapped, kBadFile if the range is not inside it.
  static std::shared_ptr<const MappedFile> open(const std::string& path, int64_t offset, int64_t bytes, Owner owner = Owner::kIndex);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  const WatchedFile& file() const { return *file_; }
  void require_unchanged() const { file_->require_unchanged(); }

  using Pattern = os::Advice;
  void advise(Pattern pattern) const;  // a hint for the operating system; failures are ignored
  // Removes the pages that lie entirely in data()[begin, end) from resident memory. They can be read again.
  void release(int64_t begin, int64_t end) const;

 private:
  MappedFile() = default;
  std::unique_ptr<WatchedFile> file_;
  const void* mapping_ = nullptr;
  int64_t mapping_bytes_ = 0;
  const uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace trawl
