#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/os.hpp"

namespace trawl::os {

File open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }

File create(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }

int64_t size_of(File file) {
  struct stat info;
  if (::fstat(static_cast<int>(file), &info) != 0) return -1;
  return S_ISREG(info.st_mode) ? info.st_size : kNotRegular;
}

int64_t write_at(File file, const void* data, int64_t bytes, int64_t position) {
  ssize_t wrote;
  do wrote = ::pwrite(static_cast<int>(file), data, bytes, position);
  while (wrote < 0 && errno == EINTR);
  return wrote;
}

bool sync(File file) { return ::fsync(static_cast<int>(file)) == 0; }

void close(File file) { ::close(static_cast<int>(file)); }

void remove(const std::string& path) { ::unlink(path.c_str()); }

int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

int64_t mapping_step() { return page_bytes(); }

const void* map(File file, int64_t offset, int64_t bytes) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, static_cast<int>(file), offset);
  return address == MAP_FAILED ? nullptr : address;
}

void unmap(const void* address, int64_t bytes) { ::munmap(const_cast<void*>(address), bytes); }

void advise(const void* address, int64_t bytes, Advice advice) {
  int number = MADV_NORMAL;
  switch (advice) {
    case Advice::kRandom: number = MADV_RANDOM; break;
    case Advice::kSequential: number = MADV_SEQUENTIAL; break;
    case Advice::kWillNeed: number = MADV_WILLNEED; break;
    case Advice::kHugePages:
#ifdef MADV_HUGEPAGE
      number = MADV_HUGEPAGE;
      break;
#else
      return;
#endif
  }
  (void)::madvise(const_cast<void*>(address), bytes, number);
}

void release(const void* address, int64_t bytes) { (void)::madvise(const_cast<void*>(address), bytes, MADV_DONTNEED); }

void* allocate_pages(int64_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  advise(memory, bytes, Advice::kHugePages);
  return memory;
}

void free_pages(void* memory, int64_t bytes) { ::munmap(memory, bytes); }

}  // namespace trawl::os
