// `screen.i8`: the rows a third time, as int8 along a few leading directions, for a pass before that over the codes.
// Optional, beside a codes file; docs/certificate.md, "The screen", says what the numbers mean and why they suffice.
//
// Layout, little endian. R = rows a block (that of the codes), h = directions (a multiple of 64), d = dimension.
//
//   header      ScreenHeader, 96 bytes; then directions: float32[h][d]; then zeros to a multiple of 4096 (header_bytes)
//   block 0..   each exactly block_bytes long, a multiple of 64; all full but the last
//     codes     int8[R][h]    of the turned coordinates along the directions; each in [-127, 127]
//     scale     float32[R]    0, or at least 2^-126
//     rest      float32[R]    rho: upper bound of what of (row - mean) lies outside the directions
//     size      float32[R]    upper bound of |coordinates| + 128*|what the codes lost of them|
//     code_sum  int32[R]
//     bias      float32[R]    the codes' bias as the row test takes it
//     tail      CodesBlockTail, 64 bytes
//   footer      CodesFooter, 64 bytes
//
// A row whose numbers would leave float32 in the row test has zero codes and infinite rest and size: it is always kept.
//
// Version history
//   1  first
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/codes_file.hpp"
#include "trawl/rows.hpp"

namespace trawl {

constexpr uint32_t kScreenVersion = 1;
constexpr char kScreenMagic[8] = {'T', 'R', 'A', 'W', 'L', 'S', 'C', '\n'};
constexpr int64_t kMaxScreenDirections = 1024;
constexpr int64_t kMaxScreenDimension = 4096;
constexpr double kMaxScreenDefect = 0x1p-10;

struct ScreenHeader {
  char magic[8];
  uint32_t version;
  uint32_t metric;
  uint32_t dimension;       // d
  uint32_t directions;      // h
  uint32_t rows_per_block;  // R
  uint32_t turn;
  uint64_t sign_seed;
  uint64_t header_bytes;
  uint64_t block_bytes;
  double defect;            // upper bound of the norm of P P^T - I, P being the directions
  uint64_t codes_identity;  // CodesFile::identity() of the codes that it stands before
  uint64_t reserved[2];     // zero
  uint64_t checksum;        // of the header with this field zero, then of the directions
};
static_assert(sizeof(ScreenHeader) == 96, "part of the file format");

// Byte positions inside a block.
struct ScreenBlockLayout {
  ScreenBlockLayout(int64_t rows_per_block, int64_t directions);
  int64_t scale, rest, size, code_sum, bias, tail, bytes;
};

// A block where it lies in the mapping.
struct ScreenBlock {
  int64_t first_row;
  int64_t rows;
  const int8_t* codes_i8;  // [rows_per_block][directions], 64-byte aligned
  const float* scale_f32;
  const float* rest_f32;
  const float* size_f32;
  const int32_t* code_sum_i32;
  const float* bias_f32;
  const CodesBlockTail* tail;
};

// A finished file, read-only; immutable, shared by threads.
class ScreenFile {
 public:
  // Checks as CodesFile::open does. Throws kBadFile with the reason, kIo.
  static std::shared_ptr<const ScreenFile> open(const std::string& path);

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t directions() const { return directions_; }
  int64_t rows() const { return rows_; }
  int64_t rows_per_block() const { return rows_per_block_; }
  int64_t blocks() const { return blocks_; }
  uint64_t sign_seed() const { return sign_seed_; }
  uint64_t codes_identity() const { return codes_identity_; }
  uint64_t identity() const { return identity_; }  // equal files' headers and directions have equal ones
  double defect() const { return defect_; }
  const std::vector<float>& basis() const { return basis_f32_; }  // [directions][dimension]
  int64_t bytes() const;
  ScreenBlock block(int64_t index) const;
  bool block_checksum_holds(int64_t index) const;

 private:
  ScreenFile() = default;
  std::shared_ptr<const MappedFile> file_;
  Metric metric_ = Metric::kInnerProduct;
  int64_t dimension_ = 0, directions_ = 0, rows_ = 0, rows_per_block_ = 0, blocks_ = 0;
  int64_t header_bytes_ = 0, block_bytes_ = 0;
  uint64_t sign_seed_ = 0, codes_identity_ = 0, identity_ = 0;
  double defect_ = 0;
  std::vector<float> basis_f32_;
};

struct ScreenOptions {
  // Directions to keep, a multiple of 64; 0 chooses, and makes no file where a screen would not pay.
  int64_t directions = 0;
};

struct ScreenResult {
  int64_t directions = 0;  // 0: no file was made
  std::string reason;      // why so many, or why none
};

// Makes the file for finished codes. The bytes depend on codes and rows alone, not on threads or instruction set.
// Throws kBadFile when shapes disagree, kBadArgument, kCancelled, kIo; nothing is left at `path` then.
ScreenResult make_screen(const std::string& path, const CodesFile& codes, const Rows& rows,
                         const ScreenOptions& options, ThreadPool& pool, const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl
