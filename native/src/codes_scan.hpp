// The pass over the codes of a shard.
#pragma once
#include <cmath>

#include "block_scan.hpp"
#include "rounding.hpp"

namespace trawl {

// Rows of one scattered() call: one vector of a row test.
inline constexpr int kScatteredRows = 16;

// Their copies.
struct ScatteredRows {
  explicit ScatteredRows(int64_t padded) : codes_i8(kScatteredRows * padded) {}
  AlignedBuffer<int8_t> codes_i8;
  float scale_f32[kScatteredRows] = {}, residual_f32[kScatteredRows] = {}, stored_norm_f32[kScatteredRows] = {};
  double bias_f64[kScatteredRows] = {};
  int32_t code_sum_i32[kScatteredRows] = {};
  float bias_f32[kScatteredRows], norm_f32[kScatteredRows];  // prepared for the row test
};

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
          const float* norm_f32 = prepare_rows(block.bias_f64 + at, block.norm_f32 + at, block.residual_f32 + at, rows, workspace.bias_f32, workspace.norm_f32);
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
          norm_f32 = prepare_rows(bias_f64, norm_f32, residual_f32, chosen.count, workspace.bias_f32, workspace.norm_f32);
          return CodeRows{codes_i8, packed_.padded, static_cast<int>(chosen.count),
                          gather_numbers(block.scale_f32, chosen, to.scale_f32), residual_f32, norm_f32,
                          workspace.bias_f32, gather_numbers(block.code_sum_i32, chosen, to.code_sum_i32), false};
        },
        // Bound the few kept pairs in float64 at once, while their codes are in the cache.
        [&](const CodeRows&, int64_t local, int64_t query, const Hit&, const Workspace&) {
          refine_pair(shard_, block, local, packed_, query, *states_[query], kernels_);
        });
  }

  // The row test of one query over rows anywhere in the shard, whose codes are copied side by side. Those that it keeps are refined.
  void scattered(const int64_t* rows, int count, int64_t query, ScatteredRows& to) const {
    const QueryBound& bound = packed_.bounds[query];
    QueryState& state = *states_[query];
    for (int i = 0; i < count; ++i) {
      const CodesBlock block = codes_.block(rows[i] / codes_.rows_per_block());
      const int64_t local = rows[i] % codes_.rows_per_block();
      std::memcpy(to.codes_i8.data() + i * packed_.padded, block.codes_i8 + local * packed_.padded, packed_.padded);
      to.scale_f32[i] = block.scale_f32[local];
      to.residual_f32[i] = block.residual_f32[local];
      to.stored_norm_f32[i] = block.norm_f32[local];
      to.bias_f64[i] = block.bias_f64[local];
      to.code_sum_i32[i] = block.code_sum_i32[local];
    }
    const float* const norm_f32 = prepare_rows(to.bias_f64, to.stored_norm_f32, to.residual_f32, count, to.bias_f32, to.norm_f32);
    const CodeRows view = {to.codes_i8.data(), packed_.padded, count, to.scale_f32, to.residual_f32, norm_f32, to.bias_f32, to.code_sum_i32, false};
    const float theta = bound.theta(state.tau());
    const RowTest test = {&bound.phi_f32, &bound.test_a_f32, &bound.test_n_f32, &theta};
    Hit hits[kScatteredRows];
    const size_t kept = kernels_.scan_rows(view, packed_.natural_i8.data() + query * packed_.padded, 1, test, hits);
    for (size_t h = 0; h < kept; ++h) {
      const int i = hits[h].row;
      if (i >= count) continue;
      const double dot = kernels_.dot_codes(packed_.rotated_f64.data() + query * packed_.padded, to.codes_i8.data() + i * packed_.padded, packed_.padded);
      const QueryBound::Interval interval = bound.interval(dot, to.scale_f32[i], to.residual_f32[i], to.stored_norm_f32[i], to.bias_f64[i]);
      if (!(interval.upper < state.tau())) state.offer(shard_.first_row + rows[i], interval.lower, interval.upper);
    }
  }

  // Asks for what scattered() reads of a row.
  void prefetch(int64_t row) const {
    const CodesBlock block = codes_.block(row / codes_.rows_per_block());
    const int64_t local = row % codes_.rows_per_block();
    const int8_t* const codes = block.codes_i8 + local * packed_.padded;
    for (int64_t j = 0; j < packed_.padded; j += 64) __builtin_prefetch(codes + j);
    __builtin_prefetch(block.scale_f32 + local);
    __builtin_prefetch(block.residual_f32 + local);
    __builtin_prefetch(block.norm_f32 + local);
    __builtin_prefetch(block.bias_f64 + local);
    __builtin_prefetch(block.code_sum_i32 + local);
  }

 private:
  // Prepares `count` rows for the row test: writes their biases as float32 to bias_f32 and returns their norms. It returns
  // the given norms unless a row is untestable.
  const float* prepare_rows(const double* bias, const float* norm, const float* residual, int64_t count, float* bias_f32, float* norm_f32) const {
    const int64_t rows = (count + 15) / 16 * 16;
    row_test_biases(mean_.metric, bias, norm, rows, mean_.kappa, bias_f32);
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
      norm_f32[i] = keep ? kInfinityF32 : norm[i];
      if (keep) bias_f32[i] = 0;
    }
    return norm_f32;
  }

  const Shard& shard_;
  const CodesFile& codes_;
  const PackMean& mean_;
};

}  // namespace trawl
