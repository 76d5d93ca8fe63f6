// A pass over the screen of a shard, before its codes.
#pragma once
#include "block_scan.hpp"

namespace trawl {

// The pass before: what the screen cannot drop is settled by the codes, at once where the score is likely to raise tau, else
// when the pass is over and tau has risen.
class ScreenScan : public BlockScan {
 public:
  // packed: for the screen; in_codes: the same queries for the codes, query q being number numbers[q] of them.
  ScreenScan(const Shard& shard, const PackedQueries& packed, const PackedQueries& in_codes,
             const std::vector<int64_t>& numbers, int64_t most_deferred, const States& states,
             const SearchOptions& options, const Kernels& kernels)
      : BlockScan(packed, states, options, kernels), shard_(shard), screen_(*shard.screen), codes_(*shard.codes),
        in_codes_(in_codes), numbers_(numbers), most_deferred_(most_deferred) {}

  void block(int64_t index) {
    const CodesBlock behind = codes_.block(index);
    pass(index, [&](const CodeRows& rows, int64_t at, int64_t query, const Hit& hit, const Workspace& workspace) {
      QueryState& state = *states_[query];
      const float margin = packed_.a[query] * rows.residual_f32[hit.row] + packed_.c[query] * rows.norm_f32[hit.row];
      const bool waits = hit.value - margin < workspace.likely[query] &&
                         state.defer(hit.value, behind.first_row + at + hit.row, most_deferred_);
      if (!waits) settle_pair(shard_, behind, at + hit.row, in_codes_, numbers_[query], state, kernels_);
    });
  }

  // Counts what would be kept.
  void trial(int64_t index, std::vector<std::atomic<int64_t>>& kept) {
    pass(index, [&](const CodeRows&, int64_t, int64_t query, const Hit&, const Workspace&) {
      kept[query].fetch_add(1, std::memory_order_relaxed);
    });
  }

 private:
  template <typename Settle>
  void pass(int64_t index, Settle settle) {
    const ScreenBlock block = screen_.block(index);
    scan_block(
        shard_.first_row + block.first_row, block.rows,
        [&](int64_t at, int64_t rows, Workspace&) {
          return CodeRows{block.codes_i8 + at * packed_.padded, packed_.padded, static_cast<int>(rows),
                          block.scale_f32 + at, block.rest_f32 + at, block.size_f32 + at,
                          block.bias_f32 + at, block.code_sum_i32 + at, true};
        },
        settle);
  }

  const Shard& shard_;
  const ScreenFile& screen_;
  const CodesFile& codes_;
  const PackedQueries& in_codes_;
  const std::vector<int64_t>& numbers_;
  int64_t most_deferred_;
};

}  // namespace trawl
