// The row test of one query over rows of the codes that lie anywhere in a shard. Memory limits its speed: a row has more than a dozen
// cache lines.
#pragma once
#include <cstring>

#include "dense/search/block_scan.hpp"
#include "dense/search/prepared_rows.hpp"

namespace trawl {

class ScatteredRows {
 public:
  // packed: the queries, packed for the codes.
  ScatteredRows(const Shard& shard, const PackMean& mean, const PackedQueries& packed)
      : shard_(shard), codes_(*shard.codes), mean_(mean), packed_(packed), codes_i8_(kAtOnce * packed.padded) {}

  // Tests the rows, which are numbers in the shard, and refines those that the test keeps.
  void scan(const std::vector<int64_t>& rows, int64_t query, QueryState& state) {
    const auto count = static_cast<int64_t>(rows.size());
    for (int64_t i = 0; i < std::min(count, kAtOnce); ++i) prefetch(rows[i]);
    for (int64_t at = 0; at < count; at += kAtOnce) test(rows.data() + at, count - at, query, state);
  }

 private:
  static constexpr int64_t kAtOnce = 16;  // rows of one vector of scan_rows

  // Copies the first rows of `listed` side by side, tests them, and prefetches those after them.
  void test(const int64_t* rows, int64_t listed, int64_t query, QueryState& state) {
    const auto count = static_cast<int>(std::min(listed, kAtOnce));
    for (int i = 0; i < count; ++i) {
      if (i + kAtOnce < listed) prefetch(rows[i + kAtOnce]);
      const CodesBlock block = block_of(rows[i]);
      const int64_t local = rows[i] % codes_.rows_per_block();
      std::memcpy(codes_i8_.data() + i * packed_.padded, block.codes_i8 + local * packed_.padded, packed_.padded);
      scale_f32_[i] = block.scale_f32[local];
      residual_f32_[i] = block.residual_f32[local];
      norm_f32_[i] = block.norm_f32[local];
      bias_f64_[i] = block.bias_f64[local];
      code_sum_i32_[i] = block.code_sum_i32[local];
    }
    const float* const test_norm_f32 = prepare_rows(bias_f64_, norm_f32_, residual_f32_, count, mean_, bias_f32_, test_norm_f32_);
    const CodeRows view = {
        .codes_i8 = codes_i8_.data(),
        .padded = packed_.padded,
        .rows = count,
        .scale_f32 = scale_f32_,
        .residual_f32 = residual_f32_,
        .test_norm_f32 = test_norm_f32,
        .bias_f32 = bias_f32_,
        .code_sum_i32 = code_sum_i32_,
        .first_pass = false,
    };
    const float theta = packed_.row_order.bounds[query].theta(state.tau());
    const QueryTest row_test = packed_.row_order.from(query, &theta);
    Hit hits[kAtOnce];
    const size_t kept = packed_.kernels.scan_rows(view, packed_.row_order_i8.data() + query * packed_.padded, 1, row_test, hits);
    for (size_t h = 0; h < kept; ++h) {
      if (hits[h].row >= count) continue;
      const int64_t row = rows[hits[h].row];
      refine_pair(shard_, block_of(row), row % codes_.rows_per_block(), packed_, query, state, packed_.kernels);
    }
  }

  CodesBlock block_of(int64_t row) const { return codes_.block(row / codes_.rows_per_block()); }

  // The codes go to the second cache level: lines on their way to the first one are fewer.
  void prefetch(int64_t row) const {
    const CodesBlock block = block_of(row);
    const int64_t local = row % codes_.rows_per_block();
    const int8_t* const codes = block.codes_i8 + local * packed_.padded;
    for (int64_t j = 0; j < packed_.padded; j += 64) __builtin_prefetch(codes + j, 0, 2);
    __builtin_prefetch(block.scale_f32 + local);
    __builtin_prefetch(block.residual_f32 + local);
    __builtin_prefetch(block.norm_f32 + local);
    __builtin_prefetch(block.bias_f64 + local);
    __builtin_prefetch(block.code_sum_i32 + local);
  }

  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
  const PackedQueries& packed_;
  AlignedBuffer<int8_t> codes_i8_;
  float scale_f32_[kAtOnce] = {}, residual_f32_[kAtOnce] = {}, norm_f32_[kAtOnce] = {};
  double bias_f64_[kAtOnce] = {};
  int32_t code_sum_i32_[kAtOnce] = {};
  float bias_f32_[kAtOnce] = {}, test_norm_f32_[kAtOnce] = {};  // prepared for the row test
};

}  // namespace trawl
