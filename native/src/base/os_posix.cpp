#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "base/os.hpp"

namespace trawl::os {

namespace {

Identity identity_of(const struct stat& info) {
#if defined(__APPLE__)
  const struct timespec written = info.st_mtimespec;
#else
  const struct timespec written = info.st_mtim;
#endif
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), info.st_size,
          int64_t{written.tv_sec} * 1000000000 + written.tv_nsec};
}

// A guarded mapping. The handler of the signal reads it while another thread may change it: an odd or changed version says so.
struct Guarded {
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<std::atomic<bool>*> lost{nullptr};
  Guarded* next = nullptr;

  void set(uintptr_t from, uintptr_t to, std::atomic<bool>* flag) {
    ++version;
    begin = from;
    end = to;
    lost = flag;
    ++version;
  }
};

// Never freed, because a handler may read any of them at any time.
std::atomic<Guarded*> all_guarded{nullptr};
std::mutex guarding;
struct sigaction action_before;

// A mapping that is being read is not changed meanwhile, so its entry can be read whole.
const Guarded* find_guarded(uintptr_t address, uintptr_t& end, std::atomic<bool>*& lost) {
  for (const Guarded* each = all_guarded; each != nullptr; each = each->next) {
    const uint32_t version = each->version;
    const uintptr_t begin = each->begin;
    end = each->end;
    lost = each->lost;
    if (version % 2 == 0 && version == each->version && begin <= address && address < end) return each;
  }
  return nullptr;
}

// Only calls functions that a handler may call; mmap() is a system call without state of its own.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  uintptr_t end = 0;
  std::atomic<bool>* lost = nullptr;
  // Other programs send signals with a code of 0 or below, and without an address.
  if (info->si_code > 0 && find_guarded(address, end, lost) != nullptr) {
    // First the flag: who reads a zero from now on finds it set.
    *lost = true;
    const uintptr_t page = address - address % static_cast<uintptr_t>(page_bytes());
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, flags, -1, 0);
    errno = error;
    if (zeros != MAP_FAILED) return;
  }
  if ((action_before.sa_flags & SA_SIGINFO) != 0) return action_before.sa_sigaction(signal, info, context);
  if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) return action_before.sa_handler(signal);
  ::sigaction(signal, &action_before, nullptr);
  ::raise(signal);
}

}  // namespace

File open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }

File create(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }

int64_t size_of(File file) {
  struct stat info;
  if (::fstat(static_cast<int>(file), &info) != 0) return -1;
  return S_ISREG(info.st_mode) ? info.st_size : kNotRegular;
}

bool identify(File file, Identity& identity) {
  struct stat info;
  if (::fstat(static_cast<int>(file), &info) != 0) return false;
  identity = identity_of(info);
  return true;
}

bool identify(const std::string& path, Identity& identity) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return false;
  identity = identity_of(info);
  return true;
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

bool guard(const void* address, int64_t bytes, std::atomic<bool>* lost) {
  const std::lock_guard<std::mutex> lock(guarding);
  static const bool handled = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &action_before) == 0;
  }();
  (void)handled;
  const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + static_cast<uintptr_t>(bytes);
  Guarded* place = nullptr;
  for (Guarded* each = all_guarded; each != nullptr; each = each->next) {
    if (each->begin == begin && each->end == end && each->lost == lost) return false;
    if (each->begin < end && begin < each->end) each->set(0, 0, nullptr);  // of a mapping that has ended
    if (each->end == 0) place = each;
  }
  if (place == nullptr) {
    place = new Guarded;
    place->next = all_guarded;
    all_guarded = place;
  }
  place->set(begin, end, lost);
  return true;
}

void unguard(const void* address, const std::atomic<bool>* lost) {
  const std::lock_guard<std::mutex> lock(guarding);
  for (Guarded* each = all_guarded; each != nullptr; each = each->next) {
    if (each->begin == reinterpret_cast<uintptr_t>(address) && each->lost == lost) return each->set(0, 0, nullptr);
  }
}

std::vector<Range> mappings_of(const std::string& path) {
  std::vector<Range> found;
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return found;
  // Lines such as "7f80f4019000-7f80f401a000 r--p 0000c000 fe:00 10585710    /path".
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos || line.compare(slash, std::string::npos, real) != 0) continue;
    const size_t dash = line.find('-');
    const uintptr_t begin = std::stoull(line, nullptr, 16), end = std::stoull(line.substr(dash + 1), nullptr, 16);
    found.push_back({reinterpret_cast<const void*>(begin), static_cast<int64_t>(end - begin)});
  }
  ::free(real);
  return found;
}

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
