// `codes.i8`: the rows as int8 codes around a mean, with the numbers that bound the quantisation error.
// Only the reader and the writer below know byte offsets.
//
// Layout, little endian. R = rows per block (a multiple of 16), d = dimension, D = d rounded up to a multiple of 64.
//
//   header      CodesHeader, 96 bytes; then mean: float32[d]; then zeros to a multiple of 4096 (header_bytes)
//   block 0..   each exactly block_bytes long, a multiple of 64; all but the last are full
//     codes     int8[R][D]    row-major; each in [-127, 127]; the rotation makes columns d to D-1 nonzero too
//     scale     float32[R]    s: 0, or at least 2^-126
//     residual  float32[R]    epsilon: upper bound of |rotated row - s*codes|
//     norm      float32[R]    n: upper bound of |row - mean|
//     code_sum  int32[R]      r: sum of the row's codes (for instruction sets that offset the query by 128)
//     bias      float64[R]    beta: inner product and cosine sum mean*(row-mean); L2: -1/2 sum (row-mean)^2
//     tail      CodesBlockTail, 64 bytes: rows in the block, checksum of all bytes before the tail
//   footer      CodesFooter, 64 bytes: total rows and blocks, and what the file was made from. finish() writes it; a file without a
//               footer is unfinished.
//
// Unused rows of the last block are zero in every field; readers skip them.
//
// Version history
//   1  first
//   2  the footer has `identity` and `rows_checksum`. Files of version 1 are still read; their prefilter is compared by a sample of
//      the blocks.
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

constexpr uint32_t kCodesVersion = 2, kFirstCodesVersion = 1;
constexpr char kCodesMagic[8] = {'T', 'R', 'A', 'W', 'L', 'I', '8', '\n'};
constexpr char kCodesFooterMagic[8] = {'T', 'R', 'A', 'W', 'L', 'E', 'N', 'D'};

// How a row is rotated before quantisation; part of the format. 1: sign flips from splitmix64(sign_seed), then Hadamard
// blocks of 256 (of 64 if 256 does not divide D), see src/dense/codes/rotation.hpp.
constexpr uint32_t kRotationHadamardSigns = 1;
constexpr uint64_t kSignSeed = 0x5452415754524157ull;

struct CodesHeader {
  char magic[8];
  uint32_t version;
  uint32_t metric;
  uint32_t dimension;         // d
  uint32_t padded_dimension;  // D
  uint32_t rows_per_block;    // R
  uint32_t rotation;
  uint64_t sign_seed;
  uint64_t header_bytes;
  uint64_t block_bytes;
  uint64_t reserved[4];  // zero
  uint64_t checksum;     // of the header with this field zero, then of the mean
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
  uint64_t checksum;       // of all other fields; in version 1, and in prefilters, of the three above
  uint64_t identity;       // of these codes: a running checksum of the header's checksum, the tails of all blocks and `rows`
  uint64_t rows_checksum;  // of the vectors: a running checksum of the checksums of each block's rows as float32
  uint64_t reserved[2];
};
static_assert(sizeof(CodesFooter) == 64, "part of the file format");

// Byte positions inside a block.
struct CodesBlockLayout {
  CodesBlockLayout(int64_t rows_per_block, int64_t padded_dimension);
  int64_t scale, residual, norm, code_sum, bias, tail, bytes;
};

int64_t padded_dimension(int64_t dimension);
int64_t default_rows_per_block(int64_t dimension);  // 16 to 1,024 rows, about a megabyte of codes

// Pointers to one block inside the mapping.
struct CodesBlock {
  int64_t first_row;       // local row number of codes_i8[0]
  int64_t rows;            // rows in use; the arrays have rows_per_block entries
  const int8_t* codes_i8;  // [rows_per_block][D], 64-byte aligned
  const float* scale_f32;
  const float* residual_f32;
  const float* norm_f32;
  const int32_t* code_sum_i32;
  const double* bias_f64;
  const CodesBlockTail* tail;
};

// How searches read the file, as advice for the operating system.
enum class CodesAccess {
  kWhole,   // every search reads all blocks
  kSparse,  // searches with a prefilter read some blocks and single rows
};

// A finished file, mapped read-only. Immutable, so threads may share it; processes that map the same file share its pages.
class CodesFile {
 public:
  // Checks magic, version, all sizes and counts, and the checksum of the header. verify_codes(), which reads the whole file, checks the
  // checksums of the blocks. Throws kBadFile with the reason, kReadFailed.
  static std::shared_ptr<const CodesFile> open(const std::string& path, CodesAccess access = CodesAccess::kWhole);

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t padded() const { return padded_; }
  int64_t rows() const { return rows_; }
  int64_t rows_per_block() const { return rows_per_block_; }
  int64_t blocks() const { return blocks_; }
  uint64_t sign_seed() const { return sign_seed_; }
  const std::vector<float>& mean() const { return mean_f32_; }  // [dimension]
  const std::string& path() const;
  void require_unchanged() const;  // throws kFileChanged if the file has changed since it was opened
  int64_t bytes() const;
  // A checksum of metric, shape, mean and the tails of all blocks; in files of version 1, of up to 64 evenly spread blocks. A
  // prefilter stores the identity of its codes.
  uint64_t identity() const { return identity_; }
  // Checksum of the vectors; 0 in files of version 1.
  uint64_t rows_checksum() const { return rows_checksum_; }
  // Whether the identity of the file covers all blocks: not in files of version 1.
  bool has_full_identity() const { return version_ >= 2; }
  // The identity that follows from the tails of all blocks. Reads a page of each.
  uint64_t identity_of_blocks() const;
  CodesBlock block(int64_t index) const;
  bool block_checksum_holds(int64_t index) const;

 private:
  CodesFile() = default;
  uint64_t sampled_identity() const;
  std::shared_ptr<const MappedFile> file_;
  Metric metric_ = Metric::kInnerProduct;
  int64_t dimension_ = 0, padded_ = 0, rows_ = 0, rows_per_block_ = 0, blocks_ = 0;
  int64_t header_bytes_ = 0, block_bytes_ = 0;
  uint64_t sign_seed_ = 0, header_checksum_ = 0, identity_ = 0, rows_checksum_ = 0;
  uint32_t version_ = 0;
  std::vector<float> mean_f32_;
};

struct CodesWriterOptions {
  int64_t rows_per_block = 0;   // 0: default_rows_per_block; else a positive multiple of 16
  std::vector<float> mean_f32;  // [dimension], finite; empty: the mean of the first block of rows.
                                // Any mean is valid. If all shards have the same one, a query is packed once for all of them.
};

// Writes the file from front to back as rows arrive. The bytes depend only on the rows, the metric and the options, not on
// threads, instruction set or the division of rows into append() calls.
class CodesWriter {
 public:
  // Throws kBadArgument, kNotFinite if the mean is not finite, kWriteFailed.
  CodesWriter(const std::string& path, Metric metric, int64_t dimension, const CodesWriterOptions& options = {});
  ~CodesWriter();  // without finish() the file remains, and readers refuse it
  CodesWriter(const CodesWriter&) = delete;
  CodesWriter& operator=(const CodesWriter&) = delete;

  // rows_f32: row-major, count x dimension. Throws kNotFinite with the row's number in the file and the column, before the call
  // writes anything; kWriteFailed.
  void append(const float* rows_f32, int64_t count, ThreadPool& pool);
  int64_t dimension() const;
  int64_t rows() const;           // rows appended so far, including the block still in memory
  void finish(ThreadPool& pool);  // writes the last block and the footer, and syncs. No call may follow.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trawl
