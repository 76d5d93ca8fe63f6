// `codes.i8`: the rows a second time, as int8 around a mean, with the numbers that bound what was lost.
// Reader and writer live side by side and nobody else knows a byte offset.
//
// Layout, little endian. R = rows a block (a multiple of 16), d = dimension, D = d rounded up to 64.
//
//   header      CodesHeader, 96 bytes; then mean: float32[d]; then zeros to a multiple of 4096 (header_bytes)
//   block 0..   each exactly block_bytes long, a multiple of 64; all full but the last
//     codes     int8[R][D]    row-major; each in [-127, 127]; columns d.. carry their share of the turned row
//     scale     float32[R]    s: 0, or at least 2^-126
//     residual  float32[R]    epsilon: upper bound of |turned row - s*codes|
//     norm      float32[R]    n: upper bound of |row - mean|
//     code_sum  int32[R]      r: sum of the row's codes (for instruction sets that offset the query by 128)
//     bias      float64[R]    beta: inner product and cosine sum mean*(row-mean); L2: -1/2 sum (row-mean)^2
//     tail      CodesBlockTail, 64 bytes: rows present, checksum of all that precedes it in the block
//   footer      CodesFooter, 64 bytes: total rows and blocks. Written by finish(), so a file without it is unfinished.
//
// Rows past the count in the last block are zero in every field; readers mask them by the count.
// A writer that was killed leaves whole blocks and perhaps part of one; resume() cuts at a block boundary.
//
// Version history
//   1  first
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "trawl/metric.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

class MappedFile;

constexpr uint32_t kCodesVersion = 1;
constexpr char kCodesMagic[8] = {'T', 'R', 'A', 'W', 'L', 'I', '8', '\n'};
constexpr char kCodesFooterMagic[8] = {'T', 'R', 'A', 'W', 'L', 'E', 'N', 'D'};

// How a row is turned before it is quantised; part of the format. 1: Hadamard blocks of 256 (64 where 256 does not
// divide D) after sign flips from splitmix64(sign_seed), see src/turn.hpp.
constexpr uint32_t kTurnHadamardSigns = 1;
constexpr uint64_t kSignSeed = 0x5452415754524157ull;

struct CodesHeader {
  char magic[8];
  uint32_t version;
  uint32_t metric;
  uint32_t dimension;         // d
  uint32_t padded_dimension;  // D
  uint32_t rows_per_block;    // R
  uint32_t turn;
  uint64_t sign_seed;
  uint64_t header_bytes;
  uint64_t block_bytes;
  uint64_t reserved[4];       // zero
  uint64_t checksum;          // of the header with this field zero, then of the mean
};
static_assert(sizeof(CodesHeader) == 96, "part of the file format");

struct CodesBlockTail {
  uint64_t rows;
  uint64_t checksum;
  uint64_t reserved[6];
};
static_assert(sizeof(CodesBlockTail) == 64, "part of the file format");

struct CodesFooter {
  char magic[8];
  uint64_t rows;
  uint64_t blocks;
  uint64_t checksum;          // of the three fields above
  uint64_t reserved[4];
};
static_assert(sizeof(CodesFooter) == 64, "part of the file format");

// Byte positions inside a block.
struct CodesBlockLayout {
  CodesBlockLayout(int64_t rows_per_block, int64_t padded_dimension);
  int64_t scale, residual, norm, code_sum, bias, tail, bytes;
};

int64_t padded_dimension(int64_t dimension);
int64_t default_rows_per_block(int64_t dimension);  // about a megabyte of codes, 16 to 1,024 rows

// A block where it lies in the mapping.
struct CodesBlock {
  int64_t first_row;         // local row number of codes_i8[0]
  int64_t rows;              // present; the arrays hold rows_per_block
  const int8_t* codes_i8;    // [rows_per_block][D], 64-byte aligned
  const float* scale_f32;
  const float* residual_f32;
  const float* norm_f32;
  const int32_t* code_sum_i32;
  const double* bias_f64;
  const CodesBlockTail* tail;
};

enum class CodesPlacement {
  kTouched,    // in the page cache as far as it is read: beside a screen, single rows and some blocks are
  kMapped,     // in the page cache, shared with other processes that map the same file
  kHugePages,  // copied into this process's own memory on huge pages: a quarter faster for one query at a time on
               // machines whose page cache has only small pages; costs the reading of the file at the start
};

// A finished file, read-only; immutable, shared by threads.
class CodesFile {
 public:
  // Checks magic, version, every size and count, and the header's checksum before anything is used.
  // Block checksums are left to verify_codes(), which reads everything anyway. Throws kBadFile with the reason, kIo.
  static std::shared_ptr<const CodesFile> open(const std::string& path,
                                               CodesPlacement placement = CodesPlacement::kMapped);

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t padded() const { return padded_; }
  int64_t rows() const { return rows_; }
  int64_t rows_per_block() const { return rows_per_block_; }
  int64_t blocks() const { return blocks_; }
  uint64_t sign_seed() const { return sign_seed_; }
  const std::vector<float>& mean() const { return mean_f32_; }  // [dimension]
  int64_t bytes() const;
  // Of metric, shape, mean and the checksums of up to 64 blocks, evenly spread: what a screen made of them remembers.
  uint64_t identity() const { return identity_; }
  CodesBlock block(int64_t index) const;
  bool block_checksum_holds(int64_t index) const;

 private:
  CodesFile() = default;
  uint64_t make_identity(uint64_t header_checksum) const;
  std::shared_ptr<const MappedFile> file_;
  Metric metric_ = Metric::kInnerProduct;
  int64_t dimension_ = 0, padded_ = 0, rows_ = 0, rows_per_block_ = 0, blocks_ = 0;
  int64_t header_bytes_ = 0, block_bytes_ = 0;
  uint64_t sign_seed_ = 0, identity_ = 0;
  std::vector<float> mean_f32_;
};

struct CodesWriterOptions {
  int64_t rows_per_block = 0;      // 0: default_rows_per_block; else a positive multiple of 16
  std::vector<float> mean_f32;     // [dimension], finite; empty: the mean of the first block of rows.
                                   // Any mean is valid; one for a whole index lets a query be packed once.
};

// Makes the file in one pass as rows arrive, appending only. The bytes depend on the rows, the metric and the options
// alone: not on threads, instruction set or how the rows were cut into append() calls.
class CodesWriter {
 public:
  CodesWriter(const std::string& path, Metric metric, int64_t dimension, const CodesWriterOptions& options = {});
  // Continues an unfinished (or finished) file: keeps at most `rows_known_good` rows, rounded down to whole blocks
  // whose last one has the right checksum, and cuts the rest off. The next append() must begin with row rows().
  // A missing file, or one killed before its header was whole, begins anew with rows() == 0.
  // Throws kBadFile when the file was made for another metric, dimension or version.
  static std::unique_ptr<CodesWriter> resume(const std::string& path, Metric metric, int64_t dimension,
                                             int64_t rows_known_good, const CodesWriterOptions& options = {});
  ~CodesWriter();  // closes without finishing: the file stays resumable
  CodesWriter(const CodesWriter&) = delete;
  CodesWriter& operator=(const CodesWriter&) = delete;

  // rows_f32: row-major count x dimension. Throws kNotFinite with the global row and column; the file is then
  // as it was before the call.
  void append(const float* rows_f32, int64_t count, ThreadPool& pool);
  int64_t rows() const;         // appended so far, including the block still in memory
  int64_t rows_on_disk() const; // in whole blocks written
  void finish(ThreadPool& pool);  // last block, footer, fsync; nothing may follow

 private:
  CodesWriter();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trawl
