// The exact vectors, mapped from the files they already lie in.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/half.hpp"

namespace trawl {

class MappedFile;

enum class RowType { kFloat32, kFloat16 };
inline int64_t row_type_bytes(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

// A run of bytes of one file. Rows lie one after the other over the segments of a shard, little endian,
// without padding; a row may begin in one segment and end in the next (files made by `split`),
// and no alignment is assumed (a FAISS flat header is 45 bytes).
struct RowSegment {
  std::string path;
  int64_t offset_bytes = 0;
  int64_t bytes = 0;
};

// Read-only view of `rows` x `dimension` values. Immutable after construction, safe to share by threads.
// Truncating a mapped file while it is open is outside the contract (replace files by rename).
class Rows {
 public:
  // Throws kBadFile when a segment does not lie inside its file or the bytes are not rows*dimension*size.
  Rows(const std::vector<RowSegment>& segments, RowType type, int64_t rows, int64_t dimension);
  // A view of memory that the caller keeps alive; for tests and small in-memory indexes.
  Rows(const void* data, RowType type, int64_t rows, int64_t dimension);

  int64_t rows() const { return rows_; }
  int64_t dimension() const { return dimension_; }
  RowType type() const { return type_; }
  int64_t bytes() const { return rows_ * row_bytes_; }

  // The row's bytes where they lie (unaligned), or gathered into scratch[row_bytes()] when a boundary splits them.
  const uint8_t* bytes_of(int64_t row, uint8_t* scratch) const;
  // The row's bytes where they lie, null when a boundary splits them.
  const uint8_t* bytes_in_place(int64_t row) const;
  int64_t row_bytes() const { return row_bytes_; }

  // The row as float32 into out[dimension]; float16 is widened exactly.
  void copy_row(int64_t row, float* out_f32) const;

  // Tells the kernel how the mapping is about to be read: a whole scan, or single rows (the default).
  void advise_sequential() const;
  void advise_random() const;
  // Takes rows that have been read out of this process's memory; they stay in the page cache, and can be read again.
  void release(int64_t first, int64_t count) const;

 private:
  struct Piece {
    int64_t first_byte;    // position of data[0] in the shard's byte sequence
    int64_t bytes;
    const uint8_t* data;
    std::shared_ptr<const MappedFile> file;
  };
  const Piece* piece_of(int64_t position) const;
  std::vector<Piece> pieces_;
  RowType type_;
  int64_t rows_, dimension_, row_bytes_;
};

}  // namespace trawl
