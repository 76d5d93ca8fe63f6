#include "trawl/verify.hpp"

#include <mutex>
#include <string>
#include <vector>

#include "float_environment.hpp"
#include "row_codes.hpp"
#include "scan_codes.hpp"

namespace trawl {

VerifyResult verify_codes(const CodesFile& codes, const Rows& rows, ThreadPool& pool, const std::atomic<bool>* cancel) {
  if (codes.rows() != rows.rows() || codes.dimension() != rows.dimension()) {
    throw Error(ErrorCode::kBadFile, "codes are " + std::to_string(codes.rows()) + " x " +
                                         std::to_string(codes.dimension()) + ", rows are " +
                                         std::to_string(rows.rows()) + " x " + std::to_string(rows.dimension()));
  }
  const FloatEnvironment environment;
  const RowCoder coder(codes.metric(), codes.mean(), codes.sign_seed());
  VerifyResult result;
  std::mutex mutex;
  const auto report = [&](int64_t row, const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (result.bad_row < 0 || row < result.bad_row) result.bad_row = row, result.reason = reason;
  };
  rows.advise_sequential();
  pool.run(codes.blocks(), [&](int64_t index) {
    check_cancelled(cancel);
    const CodesBlock block = codes.block(index);
    RowCoder::Scratch scratch(codes.padded());
    std::vector<float> row(codes.dimension());
    bool row_found = false;
    for (int64_t i = 0; i < block.rows && !row_found; ++i) {
      rows.copy_row(block.first_row + i, row.data());
      const RowStats stored = {block.scale_f32[i], block.residual_f32[i], block.norm_f32[i], block.code_sum_i32[i],
                               block.bias_f64[i]};
      const std::string reason = coder.check(row.data(), block.codes_i8 + i * codes.padded(), stored, scratch);
      row_found = !reason.empty();
      if (row_found) report(block.first_row + i, reason);
    }
    if (!row_found && !codes.block_checksum_holds(index)) {
      report(block.first_row, "the checksum of block " + std::to_string(index) + " does not hold");
    }
    const std::lock_guard<std::mutex> lock(mutex);
    result.rows_checked += block.rows;
  });
  rows.advise_random();
  return result;
}

}  // namespace trawl
