#include "base/mapped_file.hpp"

#include <cerrno>

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

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, int64_t offset, int64_t bytes) {
  OpenFile opened{os::kNoFile};
  const int64_t size = open_regular(path, opened);
  if (offset < 0 || offset > size || (bytes >= 0 && bytes > size - offset)) {
    throw Error(ErrorCode::kBadFile, path + ": the file has " + std::to_string(size) + " bytes, but bytes " + std::to_string(offset) +
                                         " to " + std::to_string(offset) + "+" + std::to_string(bytes) +
                                         " are needed; the file is truncated or the wrong one");
  }
  if (bytes < 0) bytes = size - offset;

  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->bytes_ = bytes;
  if (bytes == 0) return mapped;
  const int64_t step = os::mapping_step();
  const int64_t start = offset / step * step;
  mapped->mapping_bytes_ = offset - start + bytes;
  mapped->mapping_ = os::map(opened.file, start, mapped->mapping_bytes_);
  if (mapped->mapping_ == nullptr) fail(path, "cannot map");
  mapped->data_ = static_cast<const uint8_t*>(mapped->mapping_) + (offset - start);
  return mapped;
}

MappedFile::~MappedFile() {
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
