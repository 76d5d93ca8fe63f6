// What the engine needs of the operating system: files and pages. os_posix.cpp implements it.
// A function that fails sets errno.
#pragma once
#include <cstdint>
#include <string>

namespace trawl::os {

using File = intptr_t;
constexpr File kNoFile = -1;

File open_to_read(const std::string& path);  // kNoFile: failed
File create(const std::string& path);        // for writing; an existing file becomes empty. kNoFile: failed
constexpr int64_t kNotRegular = -2;
int64_t size_of(File file);  // -1: failed, kNotRegular: not a regular file
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
enum class Advice { kRandom, kSequential, kWillNeed, kHugePages };
void advise(const void* address, int64_t bytes, Advice advice);  // failures are ignored
void release(const void* address, int64_t bytes);                // whole pages of a mapping, which can be read again

// Zeroed memory of huge pages, where there are such. nullptr: failed.
void* allocate_pages(int64_t bytes);
void free_pages(void* memory, int64_t bytes);

}  // namespace trawl::os
