// `prefilter.i8`: int8 codes of the rows' projections on their leading principal components. A search scans them before the
// codes, because they have fewer bytes. The file is optional and belongs to a codes file. docs/certificate.md, "The prefilter",
// defines the numbers and proves that they suffice.
//
// Layout, little endian. R = rows per block (as in the codes file), h = components (a multiple of 64), d = dimension.
//
//   header      PrefilterHeader, 96 bytes; then components: float32[h][d]; then zeros to a multiple of 4096 (header_bytes)
//   block 0..   each exactly block_bytes long, a multiple of 64; all but the last are full
//     codes     int8[R][h]    of the rotated coordinates in the components; each in [-127, 127]
//     scale     float32[R]    0, or at least 2^-126
//     residual  float32[R]    rho: upper bound of the length of (row - mean) outside the components
//     size      float32[R]    upper bound of |coordinates| + 128*|quantisation error|
//     code_sum  int32[R]
//     bias      float32[R]    the bias of the codes, prepared for the row test
//     tail      CodesBlockTail, 64 bytes
//   footer      CodesFooter, 64 bytes
//
// A row whose row test could overflow float32 has zero codes and infinite residual and size, so it is always kept.
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

constexpr uint32_t kPrefilterVersion = 1;
constexpr char kPrefilterMagic[8] = {'T', 'R', 'A', 'W', 'L', 'S', 'C', '\n'};
constexpr int64_t kMaxPrefilterComponents = 1024;
constexpr int64_t kMaxPrefilterDimension = 4096;
constexpr double kMaxOrthogonalityError = 0x1p-10;

struct PrefilterHeader {
  char magic[8];
  uint32_t version;
  uint32_t metric;
  uint32_t dimension;       // d
  uint32_t components;      // h
  uint32_t rows_per_block;  // R
  uint32_t rotation;
  uint64_t sign_seed;
  uint64_t header_bytes;
  uint64_t block_bytes;
  double orthogonality_error;  // upper bound of the norm of P P^T - I, P being the components
  uint64_t codes_identity;     // CodesFile::identity() of its codes
  uint64_t reserved[2];        // zero
  uint64_t checksum;           // of the header with this field zero, then of the components
};
static_assert(sizeof(PrefilterHeader) == 96, "part of the file format");

// Byte positions inside a block.
struct PrefilterBlockLayout {
  PrefilterBlockLayout(int64_t rows_per_block, int64_t components);
  int64_t scale, residual, size, code_sum, bias, tail, bytes;
};

// Pointers to one block inside the mapping.
struct PrefilterBlock {
  int64_t first_row;
  int64_t rows;
  const int8_t* codes_i8;  // [rows_per_block][components], 64-byte aligned
  const float* scale_f32;
  const float* residual_f32;
  const float* size_f32;
  const int32_t* code_sum_i32;
  const float* bias_f32;
  const CodesBlockTail* tail;
};

// A finished file, mapped read-only. Immutable, so threads may share it.
class PrefilterFile {
 public:
  // Checks what CodesFile::open checks. Throws kBadFile with the reason, kReadFailed.
  static std::shared_ptr<const PrefilterFile> open(const std::string& path);

  Metric metric() const { return metric_; }
  int64_t dimension() const { return dimension_; }
  int64_t components() const { return components_; }
  int64_t rows() const { return rows_; }
  int64_t rows_per_block() const { return rows_per_block_; }
  int64_t blocks() const { return blocks_; }
  uint64_t sign_seed() const { return sign_seed_; }
  uint64_t codes_identity() const { return codes_identity_; }
  double orthogonality_error() const { return orthogonality_error_; }
  const std::vector<float>& basis() const { return basis_f32_; }  // [components][dimension]
  void require_unchanged() const;                                 // throws kFileChanged if the file has changed since it was opened
  int64_t bytes() const;
  PrefilterBlock block(int64_t index) const;
  bool block_checksum_holds(int64_t index) const;

 private:
  PrefilterFile() = default;
  std::shared_ptr<const MappedFile> file_;
  Metric metric_ = Metric::kInnerProduct;
  int64_t dimension_ = 0, components_ = 0, rows_ = 0, rows_per_block_ = 0, blocks_ = 0;
  int64_t header_bytes_ = 0, block_bytes_ = 0;
  uint64_t sign_seed_ = 0, codes_identity_ = 0;
  double orthogonality_error_ = 0;
  std::vector<float> basis_f32_;
};

struct PrefilterOptions {
  int64_t components = 0;  // a multiple of 64; 0: choose the number, and write no file if a prefilter is not worthwhile
};

struct PrefilterResult {
  int64_t components = 0;  // 0: no file was written
  std::string reason;      // why this number was chosen, or why no file was written
};

// Writes the prefilter of finished codes. The bytes depend only on the codes and the rows, not on threads or instruction set.
// Throws kBadFile if the shapes differ, kBadArgument, kNotFinite, kCancelled, kWriteFailed; removes the unfinished file first.
PrefilterResult make_prefilter(const std::string& path, const CodesFile& codes, const Rows& rows, const PrefilterOptions& options,
                               ThreadPool& pool, const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl
