#include "output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "trawl/error.hpp"

namespace trawl {

OutputFile::OutputFile(const std::string& path, Unfinished unfinished) : path_(path), unfinished_(unfinished) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("cannot create", errno);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (unfinished_ == Unfinished::kRemove) ::unlink(path_.c_str());
}

void OutputFile::write_at(int64_t position, const void* data, int64_t bytes) const {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::pwrite(fd_, from, bytes, position);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("cannot write", wrote < 0 ? errno : EIO);
    from += wrote;
    position += wrote;
    bytes -= wrote;
  }
}

void OutputFile::finish() {
  if (::fsync(fd_) != 0) fail("cannot sync", errno);
  ::close(fd_);
  fd_ = -1;
}

void OutputFile::fail(const char* operation, int os_error) const {
  throw Error(ErrorCode::kWriteFailed, path_, operation, os_error);
}

}  // namespace trawl
