#include "base/mapped_file.hpp"

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>

#include "base/os.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

struct OpenFile {
  os::File file;
  ~OpenFile() {
    if (file != os::kNoFile) os::close(file);
  }
};

[[noreturn]] void fail(const std::string& path, const char* operation) { throw Error(ErrorCode::kReadFailed, path, operation, errno); }

int64_t open_regular(const std::string& path, OpenFile& opened) {
  opened.file = os::open_to_read(path);
  if (opened.file == os::kNoFile) fail(path, "cannot open");
  const int64_t size = os::size_of(opened.file);
  if (size == os::kNotRegular) throw Error(ErrorCode::kBadFile, path + ": not a regular file");
  if (size < 0) fail(path, "cannot stat");
  return size;
}

}  // namespace

WatchedFile::WatchedFile(const std::string& path, os::File file, Owner owner) : path_(path), owner_(owner) {
  if (!os::identify(file, opened_)) fail(path, "cannot stat");
}

WatchedFile::~WatchedFile() {
  for (const void* mapping : guarded_) os::unguard(mapping, &lost_);
}

std::shared_ptr<const WatchedFile> WatchedFile::of_library(const std::string& path) {
  static std::mutex mutex;
  // One for all threads that have the same content open: a mapping has one guard, whoever of them has made it.
  static std::map<std::string, std::weak_ptr<WatchedFile>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<WatchedFile> watched = known[path].lock();
  if (!watched || !watched->problem(Owner::kOthers).empty()) {
    OpenFile opened{os::kNoFile};
    open_regular(path, opened);
    watched = std::make_shared<WatchedFile>(path, opened.file, Owner::kIndex);
    known[path] = watched;
  }
  for (const os::Range& mapping : os::mappings_of(path)) watched->guard(mapping.begin, mapping.bytes);
  return watched;
}

void WatchedFile::guard(const void* mapping, int64_t bytes) {
  if (os::guard(mapping, bytes, &lost_)) guarded_.push_back(mapping);
}

std::string WatchedFile::problem(Owner owner) const {
  os::Identity now;
  const bool found = os::identify(path_, now);
  const int error = errno;
  const bool absent = !found && (error == ENOENT || error == ENOTDIR);
  const bool same = found && now.device == opened_.device && now.number == opened_.number;
  if (same && now.bytes != opened_.bytes) {
    return "has " + std::to_string(now.bytes) + " bytes, but had " + std::to_string(opened_.bytes) + " when it was opened";
  }
  if (lost_) return "could not be read: it was truncated, or its disk failed";
  if (same && now.written_ns != opened_.written_ns) return "was written to after it was opened";
  if (!found && !absent) return "cannot be examined any more: " + std::generic_category().message(error);
  if (same || owner == Owner::kIndex) return {};
  return absent ? "was removed or renamed after it was opened" : "is another file than the one that was opened";
}

void WatchedFile::require_unchanged() const {
  const std::string what = problem(owner_);
  if (!what.empty()) changed(what);
}

void WatchedFile::require_readable() const {
  if (lost_) require_unchanged();
}

void WatchedFile::changed(const std::string& what) const {
  throw Error(
      ErrorCode::kFileChanged,
      path_ + " " + what + ". Reload the index once the file has its old content, which trawl verify checks, or build the index again");
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, int64_t offset, int64_t bytes, Owner owner) {
  OpenFile opened{os::kNoFile};
  const int64_t size = open_regular(path, opened);
  if (offset < 0 || offset > size || (bytes >= 0 && bytes > size - offset)) {
    throw Error(ErrorCode::kBadFile, path + ": the file has " + std::to_string(size) + " bytes, but bytes " + std::to_string(offset) +
                                         " to " + std::to_string(offset) + "+" + std::to_string(bytes) +
                                         " are needed; the file is truncated or the wrong one");
  }
  if (bytes < 0) bytes = size - offset;

  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->file_ = std::make_unique<WatchedFile>(path, opened.file, owner);
  mapped->bytes_ = bytes;
  if (bytes == 0) return mapped;
  const int64_t step = os::mapping_step();
  const int64_t start = offset / step * step;
  mapped->mapping_bytes_ = offset - start + bytes;
  mapped->mapping_ = os::map(opened.file, start, mapped->mapping_bytes_);
  if (mapped->mapping_ == nullptr) fail(path, "cannot map");
  mapped->file_->guard(mapped->mapping_, mapped->mapping_bytes_);
  mapped->data_ = static_cast<const uint8_t*>(mapped->mapping_) + (offset - start);
  return mapped;
}

MappedFile::~MappedFile() {
  file_.reset();  // ends the guard
  if (mapping_ != nullptr) os::unmap(mapping_, mapping_bytes_);
}

void MappedFile::advise(Pattern pattern) const {
  if (mapping_ != nullptr) os::advise(mapping_, mapping_bytes_, pattern);
}

void MappedFile::release(int64_t begin, int64_t end) const {
  if (mapping_ == nullptr) return;
  const auto page = static_cast<uintptr_t>(os::page_bytes());
  const uintptr_t from = (reinterpret_cast<uintptr_t>(data_ + begin) + page - 1) / page * page;
  const uintptr_t to = reinterpret_cast<uintptr_t>(data_ + end) / page * page;
  if (from < to) os::release(reinterpret_cast<void*>(from), static_cast<int64_t>(to - from));
}

}  // namespace trawl
