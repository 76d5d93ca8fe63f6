// The pass over the codes of a shard.
#pragma once
#include "dense/search/block_scan.hpp"
#include "dense/search/prepared_rows.hpp"

namespace trawl {

class CodesScan : public BlockScan {
 public:
  CodesScan(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& packed, const States& states)
      : BlockScan(context, packed, states), shard_(shard), codes_(*shard.codes), mean_(mean) {}

  void block(int64_t index) {
    const CodesBlock block = codes_.block(index);
    scan_block(
        shard_.first_row + block.first_row, block.rows,
        [&](int64_t at, int64_t rows, Workspace& workspace) {
          for (int64_t i = 0; i < rows; i += 8) __builtin_prefetch(block.bias_f64 + at + i + 96);
          const float* test_norm_f32 = prepare_rows(block.bias_f64 + at, block.norm_f32 + at, block.residual_f32 + at, rows, mean_,
                                                    workspace.bias_f32, workspace.test_norm_f32);
          return CodeRows{
              .codes_i8 = block.codes_i8 + at * packed_.padded,
              .padded = packed_.padded,
              .rows = static_cast<int>(rows),
              .scale_f32 = block.scale_f32 + at,
              .residual_f32 = block.residual_f32 + at,
              .test_norm_f32 = test_norm_f32,
              .bias_f32 = workspace.bias_f32,
              .code_sum_i32 = block.code_sum_i32 + at,
              .first_pass = true,
          };
        },
        [&](const ChosenRows& chosen, Workspace& workspace) {
          GatheredRows& to = workspace.gathered;
          const int8_t* codes_i8 = gather_codes(block.codes_i8, chosen, to);
          const double* bias_f64 = gather_numbers(block.bias_f64, chosen, to.bias_f64);
          const float* residual_f32 = gather_numbers(block.residual_f32, chosen, to.residual_f32);
          const float* norm_f32 = gather_numbers(block.norm_f32, chosen, to.norm_f32);
          const float* test_norm_f32 =
              prepare_rows(bias_f64, norm_f32, residual_f32, chosen.count, mean_, workspace.bias_f32, workspace.test_norm_f32);
          return CodeRows{
              .codes_i8 = codes_i8,
              .padded = packed_.padded,
              .rows = static_cast<int>(chosen.count),
              .scale_f32 = gather_numbers(block.scale_f32, chosen, to.scale_f32),
              .residual_f32 = residual_f32,
              .test_norm_f32 = test_norm_f32,
              .bias_f32 = workspace.bias_f32,
              .code_sum_i32 = gather_numbers(block.code_sum_i32, chosen, to.code_sum_i32),
              .first_pass = false,
          };
        },
        // Bound the few kept pairs in float64 at once, while their codes are in the cache.
        [&](const CodeRows&, int64_t local, int64_t query, const Hit&, const Workspace&) {
          refine_pair(shard_, block, local, packed_, query, *states_[query], kernels_);
        });
  }

 private:
  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
};

}  // namespace trawl
