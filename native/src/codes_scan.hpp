// The pass over the codes of a shard.
#pragma once
#include <cmath>

#include "block_scan.hpp"
#include "rounding.hpp"

namespace trawl {

class CodesScan : public BlockScan {
 public:
  CodesScan(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& packed,
            const States& states)
      : BlockScan(context, packed, states), shard_(shard), codes_(*shard.codes), mean_(mean) {}

  void block(int64_t index) {
    const CodesBlock block = codes_.block(index);
    scan_block(
        shard_.first_row + block.first_row, block.rows,
        [&](int64_t at, int64_t rows, Workspace& workspace) {
          for (int64_t i = 0; i < rows; i += 8) __builtin_prefetch(block.bias_f64 + at + i + 96);
          const float* norm_f32 = prepare_rows(block.bias_f64 + at, block.norm_f32 + at, block.residual_f32 + at, rows, workspace);
          return CodeRows{block.codes_i8 + at * packed_.padded, packed_.padded, static_cast<int>(rows),
                          block.scale_f32 + at, block.residual_f32 + at, norm_f32,
                          workspace.bias_f32, block.code_sum_i32 + at, true};
        },
        [&](const ChosenRows& chosen, Workspace& workspace) {
          GatheredRows& to = workspace.gathered;
          const int8_t* codes_i8 = gather_codes(block.codes_i8, chosen, to);
          const double* bias_f64 = gather_numbers(block.bias_f64, chosen, to.bias_f64);
          const float* residual_f32 = gather_numbers(block.residual_f32, chosen, to.residual_f32);
          const float* norm_f32 = gather_numbers(block.norm_f32, chosen, to.norm_f32);
          norm_f32 = prepare_rows(bias_f64, norm_f32, residual_f32, chosen.count, workspace);
          return CodeRows{codes_i8, packed_.padded, static_cast<int>(chosen.count),
                          gather_numbers(block.scale_f32, chosen, to.scale_f32), residual_f32, norm_f32,
                          workspace.bias_f32, gather_numbers(block.code_sum_i32, chosen, to.code_sum_i32), false};
        },
        // Bound the few kept pairs in float64 at once, while their codes are in the cache.
        [&](const CodeRows&, int64_t local, int64_t query, const Hit&, const Workspace&) {
          refine_pair(shard_, block, local, packed_, query, *states_[query], kernels_);
        });
  }

 private:
  // Prepares `count` rows for the row test: writes their biases as float32 to the workspace and returns their norms. It returns
  // the given norms unless a row is untestable.
  const float* prepare_rows(const double* bias, const float* norm, const float* residual, int64_t count, Workspace& workspace) const {
    const int64_t rows = (count + 15) / 16 * 16;
    row_test_biases(mean_.metric, bias, norm, rows, mean_.kappa, workspace.bias_f32);
    // One loop for each type, so that compilers vectorise them.
    int32_t untestable = 0;
    for (int64_t i = 0; i < rows; ++i) untestable |= !(norm[i] <= kMaxTestableNorm) | !(residual[i] <= kMaxTestableNorm);
    double largest_bias = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const double size = std::fabs(bias[i]);
      largest_bias = size > largest_bias ? size : largest_bias;
    }
    if (!untestable && largest_bias <= kMaxTestableBias) return norm;
    for (int64_t i = 0; i < rows; ++i) {
      const bool keep = row_untestable(bias[i], norm[i], residual[i]);
      workspace.norm_f32[i] = keep ? kInfinityF32 : norm[i];
      if (keep) workspace.bias_f32[i] = 0;
    }
    return workspace.norm_f32;
  }

  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
};

}  // namespace trawl
