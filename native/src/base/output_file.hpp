// A file that is being written. All errors are kWriteFailed with errno and path.
#pragma once
#include <cstdint>
#include <string>

#include "base/os.hpp"

namespace trawl {

class OutputFile {
 public:
  enum class Unfinished { kKeep, kRemove };  // what the destructor does with a file without finish()

  // Creates the file, or truncates an existing one.
  OutputFile(const std::string& path, Unfinished unfinished);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  void write_at(int64_t position, const void* data, int64_t bytes) const;
  // Flushes what was written to the disk.
  void sync() const;
  // Flushes the file to disk and closes it. No call may follow.
  void finish();
  // Closes the file as it is. No call may follow.
  void close();

 private:
  [[noreturn]] void fail(const char* operation, int os_error) const;
  std::string path_;
  Unfinished unfinished_;
  os::File file_ = os::kNoFile;
};

}  // namespace trawl
