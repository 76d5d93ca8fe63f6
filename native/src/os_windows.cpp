#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

#include <cerrno>

#include "os.hpp"

namespace trawl::os {

namespace {

HANDLE handle_of(File file) { return reinterpret_cast<HANDLE>(file); }

// The error of the last call as an errno value, for what a caller tells apart.
int errno_of(DWORD error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION: return EACCES;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: return ENOMEM;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    default: return EIO;
  }
}

void set_errno() { errno = errno_of(GetLastError()); }

// Node.js has paths as UTF-8.
std::wstring wide(const std::string& path) {
  const int length = MultiByteToWideChar(CP_UTF8, 0, path.data(), static_cast<int>(path.size()), nullptr, 0);
  std::wstring result(length, L'\0');
  MultiByteToWideChar(CP_UTF8, 0, path.data(), static_cast<int>(path.size()), result.data(), length);
  return result;
}

File open(const std::string& path, DWORD access, DWORD disposition) {
  // Others may read, replace and delete the file meanwhile, as on other systems.
  constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE handle = CreateFileW(wide(path).c_str(), access, kShare, nullptr, disposition, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) set_errno();
  return handle == INVALID_HANDLE_VALUE ? kNoFile : reinterpret_cast<File>(handle);
}

SYSTEM_INFO system_info() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info;
}

}  // namespace

File open_to_read(const std::string& path) { return open(path, GENERIC_READ, OPEN_EXISTING); }

File create(const std::string& path) { return open(path, GENERIC_READ | GENERIC_WRITE, CREATE_ALWAYS); }

int64_t size_of(File file) {
  if (GetFileType(handle_of(file)) != FILE_TYPE_DISK) return kNotRegular;
  LARGE_INTEGER size;
  if (GetFileSizeEx(handle_of(file), &size)) return size.QuadPart;
  set_errno();
  return -1;
}

int64_t write_at(File file, const void* data, int64_t bytes, int64_t position) {
  constexpr int64_t kMost = 1 << 30;
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(position);
  place.OffsetHigh = static_cast<DWORD>(position >> 32);
  DWORD wrote = 0;
  if (WriteFile(handle_of(file), data, static_cast<DWORD>(bytes < kMost ? bytes : kMost), &wrote, &place)) return wrote;
  set_errno();
  return -1;
}

bool sync(File file) {
  if (FlushFileBuffers(handle_of(file))) return true;
  set_errno();
  return false;
}

void close(File file) { CloseHandle(handle_of(file)); }

void remove(const std::string& path) { DeleteFileW(wide(path).c_str()); }

int64_t page_bytes() { return system_info().dwPageSize; }

int64_t mapping_step() { return system_info().dwAllocationGranularity; }

const void* map(File file, int64_t offset, int64_t bytes) {
  const HANDLE mapping = CreateFileMappingW(handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) {
    set_errno();
    return nullptr;
  }
  const auto high = static_cast<DWORD>(offset >> 32), low = static_cast<DWORD>(offset);
  const void* const address = MapViewOfFile(mapping, FILE_MAP_READ, high, low, bytes);
  if (address == nullptr) set_errno();
  // The view keeps the mapping.
  CloseHandle(mapping);
  return address;
}

void unmap(const void* address, int64_t) { UnmapViewOfFile(address); }

// Windows has no such hints for mapped files but reading ahead, which it also does by itself.
void advise(const void*, int64_t, Advice) {}

// Unlocking pages that are not locked removes them from the working set.
void release(const void* address, int64_t bytes) { (void)VirtualUnlock(const_cast<void*>(address), bytes); }

void* allocate_pages(int64_t bytes) {
  void* const memory = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (memory == nullptr) set_errno();
  return memory;
}

void free_pages(void* memory, int64_t) { VirtualFree(memory, 0, MEM_RELEASE); }

}  // namespace trawl::os
#endif
