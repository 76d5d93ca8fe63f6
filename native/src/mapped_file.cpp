#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "trawl/error.hpp"

namespace trawl {

namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(const std::string& path, const char* operation) {
  throw Error(ErrorCode::kReadFailed, path, operation, errno);
}

int64_t open_regular(const std::string& path, Descriptor& file) {
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.fd < 0) fail(path, "cannot open");
  struct stat info;
  if (::fstat(file.fd, &info) != 0) fail(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) throw Error(ErrorCode::kBadFile, path + ": not a regular file");
  return info.st_size;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, int64_t offset, int64_t bytes) {
  Descriptor file{-1};
  const int64_t size = open_regular(path, file);
  if (offset < 0 || offset > size || (bytes >= 0 && bytes > size - offset)) {
    throw Error(ErrorCode::kBadFile, path + ": the file has " + std::to_string(size) + " bytes, but bytes " +
                                         std::to_string(offset) + " to " + std::to_string(offset) + "+" +
                                         std::to_string(bytes) + " are needed; the file is truncated or the wrong one");
  }
  if (bytes < 0) bytes = size - offset;

  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->bytes_ = bytes;
  if (bytes == 0) return mapped;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t start = offset / page * page;
  mapped->mapping_bytes_ = offset - start + bytes;
  void* address = ::mmap(nullptr, mapped->mapping_bytes_, PROT_READ, MAP_SHARED, file.fd, start);
  if (address == MAP_FAILED) {
    mapped->mapping_bytes_ = 0;
    fail(path, "cannot map");
  }
  mapped->mapping_ = address;
  mapped->data_ = static_cast<const uint8_t*>(address) + (offset - start);
  return mapped;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

void MappedFile::advise(Pattern pattern) const {
  if (mapping_ == nullptr) return;
  int advice = MADV_NORMAL;
  switch (pattern) {
    case Pattern::kRandom: advice = MADV_RANDOM; break;
    case Pattern::kSequential: advice = MADV_SEQUENTIAL; break;
    case Pattern::kWillNeed: advice = MADV_WILLNEED; break;
    case Pattern::kHugePages:
#ifdef MADV_HUGEPAGE
      advice = MADV_HUGEPAGE;
      break;
#else
      return;
#endif
  }
  (void)::madvise(mapping_, mapping_bytes_, advice);
}

void MappedFile::release(int64_t begin, int64_t end) const {
  if (mapping_ == nullptr) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t from = (reinterpret_cast<uintptr_t>(data_ + begin) + page - 1) / page * page;
  const uintptr_t to = reinterpret_cast<uintptr_t>(data_ + end) / page * page;
  if (from < to) (void)::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace trawl
