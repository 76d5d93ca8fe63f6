// The pass over the prefilter of a shard.
#pragma once
#include "dense/search/block_scan.hpp"

namespace trawl {

// The scan refines the pairs that the prefilter keeps with their codes: at once if the score probably raises tau, else after the
// pass, when tau is higher.
class PrefilterScan : public BlockScan {
 public:
  // packed: the queries, packed for the prefilter. Query q of `packed` is query numbers[q] of `in_codes`, packed for the codes.
  PrefilterScan(const SearchContext& context, const Shard& shard, const PackedQueries& packed, const PackedQueries& in_codes,
                const std::vector<int64_t>& numbers, int64_t max_deferred, const States& states)
      : BlockScan(context, packed, states),
        shard_(shard),
        prefilter_(*shard.prefilter),
        codes_(*shard.codes),
        in_codes_(in_codes),
        numbers_(numbers),
        max_deferred_(max_deferred) {}

  void block(int64_t index) {
    const CodesBlock codes = codes_.block(index);
    pass(index, [&](const CodeRows& rows, int64_t local, int64_t query, const Hit& hit, Workspace& workspace) {
      const float margin =
          packed_.row_order.a[query] * rows.residual_f32[hit.row] + packed_.row_order.c[query] * rows.test_norm_f32[hit.row];
      if (hit.value - margin < workspace.likely[query]) {
        workspace.deferred.push_back({{hit.value, codes.first_row + local}, query});
        if (workspace.deferred.size() >= kMaxBuffered) flush_deferred(workspace);
      } else {
        refine_pair(shard_, codes, local, in_codes_, numbers_[query], *states_[query], kernels_);
      }
    });
  }

  // After the last block: flushes the buffers of all threads.
  void finish() {
    finish_workspaces([&](Workspace& workspace) { flush_deferred(workspace); });
  }

  // Counts the rows that the prefilter keeps.
  void trial(int64_t index, std::vector<std::atomic<int64_t>>& kept) {
    pass(index,
         [&](const CodeRows&, int64_t, int64_t query, const Hit&, Workspace&) { kept[query].fetch_add(1, std::memory_order_relaxed); });
  }

 private:
  // Pairs in a thread's buffer. Locking a query's state for each pair would take longer than the pass of some kernels.
  static constexpr size_t kMaxBuffered = 4096;

  void flush_deferred(Workspace& workspace) {
    std::vector<DeferredPair>& pairs = workspace.deferred;
    // Keeps the pairs that tau has not overtaken since, and sorts them by query.
    std::vector<uint32_t> ends(packed_.count + 1, 0);
    const auto is_left = [&](const DeferredPair& pair) { return !(pair.row.value < workspace.theta[pair.query]); };
    for (const DeferredPair& pair : pairs) ends[pair.query + 1] += is_left(pair);
    for (int64_t q = 0; q < packed_.count; ++q) ends[q + 1] += ends[q];
    std::vector<Deferred> rows(ends[packed_.count]);
    for (const DeferredPair& pair : pairs) {
      if (is_left(pair)) rows[ends[pair.query]++] = pair.row;
    }
    pairs.clear();
    const int64_t per_block = codes_.rows_per_block();
    int64_t first = 0;
    for (int64_t q = 0; q < packed_.count; first = ends[q], ++q) {
      if (ends[q] == first) continue;
      QueryState& state = *states_[q];
      first += state.defer(rows.data() + first, ends[q] - first, max_deferred_);
      for (; first < ends[q]; ++first) {
        const int64_t row = rows[first].row;
        refine_pair(shard_, codes_.block(row / per_block), row % per_block, in_codes_, numbers_[q], state, kernels_);
      }
    }
  }

  template <typename Refine>
  void pass(int64_t index, Refine refine) {
    const PrefilterBlock block = prefilter_.block(index);
    scan_block(
        shard_.first_row + block.first_row, block.rows,
        [&](int64_t at, int64_t rows, Workspace&) {
          return CodeRows{
              .codes_i8 = block.codes_i8 + at * packed_.padded,
              .padded = packed_.padded,
              .rows = static_cast<int>(rows),
              .scale_f32 = block.scale_f32 + at,
              .residual_f32 = block.residual_f32 + at,
              .test_norm_f32 = block.size_f32 + at,
              .bias_f32 = block.bias_f32 + at,
              .code_sum_i32 = block.code_sum_i32 + at,
              .first_pass = true,
          };
        },
        [&](const ChosenRows& chosen, Workspace& workspace) {
          GatheredRows& to = workspace.gathered;
          const int8_t* codes_i8 = gather_codes(block.codes_i8, chosen, to);
          return CodeRows{
              .codes_i8 = codes_i8,
              .padded = packed_.padded,
              .rows = static_cast<int>(chosen.count),
              .scale_f32 = gather_numbers(block.scale_f32, chosen, to.scale_f32),
              .residual_f32 = gather_numbers(block.residual_f32, chosen, to.residual_f32),
              .test_norm_f32 = gather_numbers(block.size_f32, chosen, to.norm_f32),
              .bias_f32 = gather_numbers(block.bias_f32, chosen, to.bias_f32),
              .code_sum_i32 = gather_numbers(block.code_sum_i32, chosen, to.code_sum_i32),
              .first_pass = false,
          };
        },
        refine);
  }

  const Shard& shard_;
  const PrefilterFile& prefilter_;
  const CodesFile& codes_;
  const PackedQueries& in_codes_;
  const std::vector<int64_t>& numbers_;
  int64_t max_deferred_;
};

}  // namespace trawl
