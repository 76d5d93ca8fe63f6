#include "trawl/rows.hpp"

#include <algorithm>
#include <cstring>

#include "base/mapped_file.hpp"
#include "trawl/error.hpp"
#include "trawl/metric.hpp"

namespace trawl {

namespace {

int64_t checked_row_bytes(RowType type, int64_t rows, int64_t dimension) {
  check_dimension(dimension);
  const int64_t row_bytes = dimension * row_type_bytes(type);
  if (rows < 0 || rows > INT64_MAX / row_bytes) {
    throw Error(ErrorCode::kBadArgument, "row count " + std::to_string(rows) + " is out of range");
  }
  return row_bytes;
}

}  // namespace

Rows::Rows(const std::vector<RowSegment>& segments, RowType type, int64_t rows, int64_t dimension)
    : type_(type), rows_(rows), dimension_(dimension), row_bytes_(checked_row_bytes(type, rows, dimension)) {
  const int64_t wanted = rows * row_bytes_;
  int64_t total = 0;
  for (const RowSegment& segment : segments) {
    if (segment.bytes < 0 || segment.bytes > INT64_MAX - total) {
      throw Error(ErrorCode::kBadFile, segment.path + ": segment of " + std::to_string(segment.bytes) + " bytes");
    }
    if (segment.bytes == 0) continue;
    auto file = MappedFile::open(segment.path, segment.offset_bytes, segment.bytes, segment.adopted ? Owner::kOthers : Owner::kIndex);
    segments_.push_back({total, segment.bytes, file->data(), file});
    total += segment.bytes;
  }
  if (total != wanted) {
    throw Error(ErrorCode::kBadFile, "the segments hold " + std::to_string(total) + " bytes, but " + std::to_string(rows) + " rows of " +
                                         std::to_string(dimension) + " values need " + std::to_string(wanted) +
                                         "; a file is missing, or the row count or the dimension is wrong");
  }
  advise_random();
}

Rows::Rows(const void* data, RowType type, int64_t rows, int64_t dimension)
    : type_(type), rows_(rows), dimension_(dimension), row_bytes_(checked_row_bytes(type, rows, dimension)) {
  if (rows > 0) segments_.push_back({0, rows * row_bytes_, static_cast<const uint8_t*>(data), nullptr});
}

const Rows::MappedSegment* Rows::segment_at(int64_t position) const {
  return &*(std::upper_bound(segments_.begin(), segments_.end(), position,
                             [](int64_t at, const MappedSegment& segment) { return at < segment.first_byte; }) -
            1);
}

const uint8_t* Rows::bytes_in_place(int64_t row) const {
  const int64_t position = row * row_bytes_;
  const MappedSegment* segment = segment_at(position);
  const int64_t offset = position - segment->first_byte;
  return offset + row_bytes_ <= segment->bytes ? segment->data + offset : nullptr;
}

const uint8_t* Rows::bytes_of(int64_t row, uint8_t* scratch) const {
  if (const uint8_t* whole = bytes_in_place(row)) return whole;
  const MappedSegment* segment = segment_at(row * row_bytes_);
  int64_t offset = row * row_bytes_ - segment->first_byte;
  for (int64_t done = 0; done < row_bytes_; ++segment, offset = 0) {
    const int64_t take = std::min(row_bytes_ - done, segment->bytes - offset);
    std::memcpy(scratch + done, segment->data + offset, take);
    done += take;
  }
  return scratch;
}

void Rows::copy_row(int64_t row, float* out) const {
  auto* bytes = reinterpret_cast<uint8_t*>(out);
  if (type_ == RowType::kFloat32) {
    const uint8_t* from = bytes_of(row, bytes);
    if (from != bytes) std::memcpy(bytes, from, row_bytes_);
    return;
  }
  // A float16 row that spans two segments is copied to the second half of `out`. The conversion reads it ahead of its writes.
  f16_to_f32_array(bytes_of(row, bytes + row_bytes_), dimension_, out);
}

void Rows::require_unchanged() const {
  const MappedFile* before = nullptr;
  for (const MappedSegment& segment : segments_) {
    if (!segment.file) continue;
    // The arrays of a pickle are segments of one file.
    if (before != nullptr && before->file().path() == segment.file->file().path()) {
      segment.file->file().require_readable();
    } else {
      segment.file->require_unchanged();
    }
    before = segment.file.get();
  }
}

void Rows::changed(int64_t row, const std::string& what) const {
  const MappedSegment* segment = segment_at(row * row_bytes_);
  if (segment->file) segment->file->file().changed(what);
  throw Error(ErrorCode::kFileChanged, "the vectors in memory: " + what, row);
}

void Rows::advise_sequential() const {
  for (const MappedSegment& segment : segments_) {
    if (segment.file) segment.file->advise(MappedFile::Pattern::kSequential);
  }
}

void Rows::advise_random() const {
  for (const MappedSegment& segment : segments_) {
    if (segment.file) segment.file->advise(MappedFile::Pattern::kRandom);
  }
}

void Rows::release(int64_t first, int64_t count) const {
  const int64_t from = first * row_bytes_, to = from + count * row_bytes_;
  for (const MappedSegment& segment : segments_) {
    if (!segment.file) continue;
    const int64_t begin = std::max(from - segment.first_byte, int64_t{0});
    const int64_t end = std::min(to - segment.first_byte, segment.bytes);
    if (begin < end) segment.file->release(begin, end);
  }
}

}  // namespace trawl
