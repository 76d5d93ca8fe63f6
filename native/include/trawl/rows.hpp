// The exact vectors, mapped from their files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/f16.hpp"

namespace trawl {

class MappedFile;

enum class RowType { kFloat32, kFloat16 };
inline int64_t row_type_bytes(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

// A byte range of one file. The segments of a shard in order contain its rows, little endian, without padding. A row may begin in
// one segment and end in the next, as in files cut by `split`. Offsets need not be aligned: the header of a FAISS flat index
// has 45 bytes.
struct RowSegment {
  std::string path;
  int64_t offset_bytes = 0;
  int64_t bytes = 0;
  bool adopted = false;  // whether the file belongs to others than the index
};

// Read-only view of `rows` x `dimension` values. Immutable after construction, so threads may share it.
class Rows {
 public:
  // Throws kBadFile if a segment does not lie inside its file, or the segments do not have rows*dimension*size bytes together.
  Rows(const std::vector<RowSegment>& segments, RowType type, int64_t rows, int64_t dimension);
  // A view of memory that must outlive the object; for tests and small in-memory indexes.
  Rows(const void* data, RowType type, int64_t rows, int64_t dimension);

  int64_t rows() const { return rows_; }
  int64_t dimension() const { return dimension_; }
  RowType type() const { return type_; }
  int64_t bytes() const { return rows_ * row_bytes_; }

  // The row's bytes in the mapping (unaligned), or copied to scratch[row_bytes()] if the row spans two segments.
  const uint8_t* bytes_of(int64_t row, uint8_t* scratch) const;
  // The row's bytes in the mapping; null if the row spans two segments.
  const uint8_t* bytes_in_place(int64_t row) const;
  int64_t row_bytes() const { return row_bytes_; }

  void require_unchanged() const;                                         // throws kFileChanged if a file has changed since it was opened
  [[noreturn]] void changed(int64_t row, const std::string& what) const;  // throws kFileChanged for the content of a row

  // Copies the row to out[dimension] as float32. The conversion from float16 is exact.
  void copy_row(int64_t row, float* out_f32) const;

  // Removes the pages of these rows from the process's resident memory. They stay in the page cache and can be read again.
  void release(int64_t first, int64_t count) const;

 private:
  friend class SequentialReading;
  struct MappedSegment {
    int64_t first_byte;  // position of data[0] in the bytes of all rows
    int64_t bytes;
    const uint8_t* data;
    std::shared_ptr<const MappedFile> file;
  };
  const MappedSegment* segment_at(int64_t position) const;
  // Advises the operating system how the rows will be read: in order, or single rows (the default).
  void advise_sequential() const;
  void advise_random() const;
  std::vector<MappedSegment> segments_;
  RowType type_;
  int64_t rows_, dimension_, row_bytes_;
};

// While it lives, the operating system reads ahead, for a caller that reads the rows in order.
class SequentialReading {
 public:
  explicit SequentialReading(const Rows& rows) : rows_(rows) { rows_.advise_sequential(); }
  ~SequentialReading() { rows_.advise_random(); }
  SequentialReading(const SequentialReading&) = delete;
  SequentialReading& operator=(const SequentialReading&) = delete;

 private:
  const Rows& rows_;
};

}  // namespace trawl
