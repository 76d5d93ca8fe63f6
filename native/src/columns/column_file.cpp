#include <cstring>

#include "base/mapped_file.hpp"
#include "trawl/columns.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

constexpr char kMagic[] = "TRAWLCO\n";
constexpr uint32_t kVersion = 1;
constexpr int64_t kHeaderBytes = 128;

struct Header {
  char magic[8];
  uint32_t version, type;
  uint64_t rows, values, distinct;
  uint32_t width, multiple;
  uint64_t starts, data, text_starts, texts, bytes;
};

const char* name_of(uint32_t type) {
  const char* const names[] = {"string", "number", "boolean", "date"};
  return names[type - 1];
}

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

[[noreturn]] void bad(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::kBadFile, path + ": " + reason + ". Copy it again, or make it again with trawl optimize");
}

}  // namespace

std::shared_ptr<const ColumnFile> ColumnFile::open(const std::string& path, ColumnType type) {
  auto file = MappedFile::open(path, 0, -1);
  Header header;
  if (file->bytes() < kHeaderBytes) bad(path, "it is not a column file");
  std::memcpy(&header, file->data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, 8) != 0) bad(path, "it is not a column file");
  if (header.version != kVersion) {
    bad(path, "it has version " + std::to_string(header.version) + ", but this program reads " + std::to_string(kVersion));
  }
  const bool is_number = header.type == 2 || header.type == 4;
  const bool is_code = header.type == 1 || header.type == 3;
  const bool fits = is_number ? header.width == 8 : is_code && (header.width == 1 || header.width == 2 || header.width == 4);
  if (!fits) bad(path, "its type or width is unknown");
  if (header.type != static_cast<uint32_t>(type)) {
    bad(path,
        std::string("it has the type ") + name_of(header.type) + ", but the column has the type " + name_of(static_cast<uint32_t>(type)));
  }
  // Limits that keep the sums below from overflowing.
  const auto size = static_cast<uint64_t>(file->bytes());
  if (header.rows > size || header.values > size || header.distinct > size) bad(path, "its size differs from its header");
  const uint64_t elements = header.multiple != 0 ? header.values : header.rows;
  const uint64_t data = aligned(kHeaderBytes + (header.multiple != 0 ? 4 * (header.rows + 1) : 0));
  const uint64_t text_starts = aligned(data + elements * header.width);
  const uint64_t texts = aligned(text_starts + (header.type == 1 ? 8 * (header.distinct + 1) : 0));
  if (header.starts != kHeaderBytes || header.data != data || header.text_starts != text_starts || header.texts != texts ||
      header.bytes != size || texts > size) {
    bad(path, "its size differs from its header");
  }
  std::shared_ptr<ColumnFile> column(new ColumnFile);
  column->type_ = static_cast<ColumnType>(header.type);
  column->rows_ = static_cast<int64_t>(header.rows);
  column->elements_ = static_cast<int64_t>(elements);
  column->distinct_ = header.type == 1 ? static_cast<int64_t>(header.distinct) : 0;
  column->width_ = static_cast<int>(header.width);
  if (header.multiple != 0) column->starts_ = reinterpret_cast<const uint32_t*>(file->data() + kHeaderBytes);
  column->data_ = file->data() + data;
  column->text_starts_ = reinterpret_cast<const uint64_t*>(file->data() + text_starts);
  column->texts_ = reinterpret_cast<const char*>(file->data() + texts);
  column->text_bytes_ = static_cast<int64_t>(size - texts);
  column->file_ = std::move(file);
  return column;
}

void ColumnFile::require_unchanged() const { file_->require_unchanged(); }

int64_t ColumnFile::bytes() const { return file_->bytes(); }

std::string ColumnFile::text(int64_t rank) const {
  const uint64_t begin = text_starts_[rank], end = text_starts_[rank + 1];
  // A damaged file must not be read beyond its end.
  if (begin > end || end > static_cast<uint64_t>(text_bytes_)) return {};
  return std::string(texts_ + begin, end - begin);
}

int64_t ColumnFile::rank(const std::string& wanted) const {
  int64_t low = 0, high = distinct_;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (text(middle) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool ColumnFile::has_text(int64_t rank, const std::string& wanted) const { return rank < distinct_ && text(rank) == wanted; }

}  // namespace trawl
