#include "trawl/verify.hpp"

#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/float_environment.hpp"
#include "dense/codes/codes_format.hpp"
#include "dense/codes/row_codes.hpp"
#include "dense/prefilter/prefilter_codes.hpp"
#include "trawl/isa.hpp"

namespace trawl {

VerifyResult verify_codes(const CodesFile& codes, const Rows& rows, ThreadPool& pool, const std::atomic<bool>* cancel) {
  if (codes.rows() != rows.rows() || codes.dimension() != rows.dimension()) {
    throw Error(ErrorCode::kBadFile, "codes are " + std::to_string(codes.rows()) + " x " + std::to_string(codes.dimension()) +
                                         ", but rows are " + std::to_string(rows.rows()) + " x " + std::to_string(rows.dimension()));
  }
  const FloatEnvironment environment;
  const RowCoder coder(codes.metric(), codes.mean(), codes.sign_seed());
  VerifyResult result;
  std::mutex mutex;
  const auto report = [&](int64_t row, const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (result.bad_row < 0 || row < result.bad_row) result.bad_row = row, result.reason = reason;
  };
  std::vector<uint64_t> block_checksums(codes.blocks());
  const SequentialReading reading(rows);
  pool.run(codes.blocks(), [&](int64_t index) {
    check_cancelled(cancel);
    const CodesBlock block = codes.block(index);
    RowCoder::Scratch scratch(codes.padded());
    std::vector<float> values(block.rows * codes.dimension());
    for (int64_t i = 0; i < block.rows; ++i) rows.copy_row(block.first_row + i, values.data() + i * codes.dimension());
    block_checksums[index] = RowsChecksum::of_block(values.data(), block.rows, codes.dimension());
    bool row_found = false;
    for (int64_t i = 0; i < block.rows && !row_found; ++i) {
      const float* row = values.data() + i * codes.dimension();
      const RowStats stored = {block.scale_f32[i], block.residual_f32[i], block.norm_f32[i], block.code_sum_i32[i], block.bias_f64[i]};
      const std::string reason = coder.check(row, block.codes_i8 + i * codes.padded(), stored, scratch);
      row_found = !reason.empty();
      if (row_found) report(block.first_row + i, reason);
    }
    if (!row_found && !codes.block_checksum_holds(index)) {
      report(block.first_row, "the checksum of block " + std::to_string(index) + " does not match");
    }
    rows.release(block.first_row, block.rows);
    const std::lock_guard<std::mutex> lock(mutex);
    result.rows_checked += block.rows;
  });
  if (result.bad_row >= 0 || !codes.has_full_identity()) return result;
  RowsChecksum rows_checksum;
  for (const uint64_t sum : block_checksums) rows_checksum.add_block(sum);
  if (codes.rows_checksum() != rows_checksum.value()) report(0, "the codes were made for other vectors, although all bounds hold");
  if (codes.identity() != codes.identity_of_blocks()) report(0, "the identity of the codes does not match their blocks");
  return result;
}

VerifyResult verify_prefilter(const PrefilterFile& prefilter, const CodesFile& codes, const Rows& rows, ThreadPool& pool,
                              const std::atomic<bool>* cancel) {
  if (prefilter.rows() != rows.rows() || prefilter.dimension() != rows.dimension() || prefilter.rows() != codes.rows() ||
      prefilter.codes_identity() != codes.identity()) {
    throw Error(ErrorCode::kBadFile, "the prefilter (" + std::to_string(prefilter.rows()) + " x " + std::to_string(prefilter.dimension()) +
                                         ") was built for other codes or rows");
  }
  const FloatEnvironment environment;
  const Kernels& kernels = select_kernels();
  VerifyResult result;
  const double orthogonality_error =
      orthogonality_error_of(prefilter.basis().data(), prefilter.components(), prefilter.dimension(), kernels, pool);
  if (!(prefilter.orthogonality_error() >= orthogonality_error)) {
    result.bad_row = 0;
    result.reason = "the orthogonality error " + number_text(prefilter.orthogonality_error()) + " is below the needed " +
                    number_text(orthogonality_error);
    return result;
  }
  const int64_t d = prefilter.dimension(), h = prefilter.components();
  const PrefilterCoder coder(codes, prefilter.basis().data(), h, prefilter.orthogonality_error(), kernels);
  std::mutex mutex;
  const SequentialReading reading(rows);
  pool.run(prefilter.blocks(), [&](int64_t index) {
    check_cancelled(cancel);
    const PrefilterBlock block = prefilter.block(index);
    PrefilterCoder::Scratch scratch(coder);
    std::vector<float> held(kProjectRows * d);
    int64_t bad_row = -1;
    std::string reason;
    for (int64_t i = 0; i < block.rows && bad_row < 0; i += kProjectRows) {
      const int here = static_cast<int>(std::min<int64_t>(kProjectRows, block.rows - i));
      const float* pointers[kProjectRows] = {};
      for (int r = 0; r < here; ++r) {
        rows.copy_row(block.first_row + i + r, held.data() + r * d);
        pointers[r] = held.data() + r * d;
        const int64_t column = first_not_finite(pointers[r], d);
        if (column >= 0 && bad_row < 0) {
          bad_row = block.first_row + i + r;
          reason = "the row is not finite at column " + std::to_string(column);
        }
      }
      if (bad_row >= 0) break;
      coder.load(pointers, here, scratch);
      for (int r = 0; r < here && bad_row < 0; ++r) {
        const int64_t at = i + r;
        const PrefilterStats stored = {block.scale_f32[at], block.residual_f32[at], block.size_f32[at], block.code_sum_i32[at],
                                       block.bias_f32[at]};
        reason = coder.check(r, block.codes_i8 + at * h, stored, scratch);
        if (!reason.empty()) bad_row = block.first_row + at;
      }
    }
    if (bad_row < 0 && !prefilter.block_checksum_holds(index)) {
      bad_row = block.first_row;
      reason = "the checksum of block " + std::to_string(index) + " does not match";
    }
    rows.release(block.first_row, block.rows);
    const std::lock_guard<std::mutex> lock(mutex);
    result.rows_checked += block.rows;
    if (bad_row >= 0 && (result.bad_row < 0 || bad_row < result.bad_row)) result.bad_row = bad_row, result.reason = reason;
  });
  return result;
}

}  // namespace trawl
