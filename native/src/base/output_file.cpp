#include "base/output_file.hpp"

#include <cerrno>

#include "trawl/error.hpp"

namespace trawl {

OutputFile::OutputFile(const std::string& path, Unfinished unfinished) : path_(path), unfinished_(unfinished) {
  file_ = os::create(path);
  if (file_ == os::kNoFile) fail("cannot create", errno);
}

OutputFile::~OutputFile() {
  if (file_ == os::kNoFile) return;
  os::close(file_);
  if (unfinished_ == Unfinished::kRemove) os::remove(path_);
}

void OutputFile::write_at(int64_t position, const void* data, int64_t bytes) const {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const int64_t wrote = os::write_at(file_, from, bytes, position);
    if (wrote <= 0) fail("cannot write", wrote < 0 ? errno : EIO);
    from += wrote;
    position += wrote;
    bytes -= wrote;
  }
}

void OutputFile::sync() const {
  if (!os::sync(file_)) fail("cannot sync", errno);
}

void OutputFile::close() {
  os::close(file_);
  file_ = os::kNoFile;
}

void OutputFile::finish() {
  sync();
  close();
}

void OutputFile::fail(const char* operation, int os_error) const { throw Error(ErrorCode::kWriteFailed, path_, operation, os_error); }

}  // namespace trawl
