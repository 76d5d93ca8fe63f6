// What the engine needs of the operating system: files and pages. os_posix.cpp implements it.
// A function that fails sets errno.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace trawl::os {

using File = intptr_t;
constexpr File kNoFile = -1;

File open_to_read(const std::string& path);  // kNoFile: failed
File create(const std::string& path);        // for writing; an existing file becomes empty. kNoFile: failed
constexpr int64_t kNotRegular = -2;
int64_t size_of(File file);  // -1: failed, kNotRegular: not a regular file
// What changes if a file is written to, or if another file takes its path.
struct Identity {
  uint64_t device, number;
  int64_t bytes, written_ns;
};
bool identify(File file, Identity& identity);                // false: failed
bool identify(const std::string& path, Identity& identity);  // false: failed
// Bytes written, perhaps fewer than asked for; -1: failed.
int64_t write_at(File file, const void* data, int64_t bytes, int64_t position);
bool sync(File file);  // flushes to the disk
void close(File file);
void remove(const std::string& path);

int64_t page_bytes();
int64_t mapping_step();  // what the offset of a mapping must be a multiple of
// Read-only. nullptr: failed.
const void* map(File file, int64_t offset, int64_t bytes);
void unmap(const void* address, int64_t bytes);
// From now on, where a page of the mapping cannot be read, because the file was truncated or its disk fails, the mapping reads as zeros
// from there on, and `lost` becomes true. Without it the operating system ends the process. Takes the place of guards of mappings that were
// there before. False: it has this guard already.
bool guard(const void* address, int64_t bytes, std::atomic<bool>* lost);
void unguard(const void* address, const std::atomic<bool>* lost);
struct Range {
  const void* begin;
  int64_t bytes;
};
std::vector<Range> mappings_of(const std::string& path);  // in this process, by any library; empty where the system does not say
enum class Advice { kRandom, kSequential, kWillNeed, kHugePages };
void advise(const void* address, int64_t bytes, Advice advice);  // failures are ignored
void release(const void* address, int64_t bytes);                // whole pages of a mapping, which can be read again

// Zeroed memory of huge pages, where there are such. nullptr: failed.
void* allocate_pages(int64_t bytes);
void free_pages(void* memory, int64_t bytes);

}  // namespace trawl::os
