#include "dense/search/exact_scan.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "dense/codes/row_codes.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {
constexpr int64_t kRowsPerItem = 256;
}

void RowLanes::load(const Rows& rows, const int64_t* local_rows, int count) {
  for (int lane = 0; lane < count; ++lane) {
    float* scratch = scratch_.data() + lane * dimension_;
    if (rows.type() == RowType::kFloat32) {
      pointers_[lane] = rows.bytes_of(local_rows[lane], reinterpret_cast<uint8_t*>(scratch));
    } else {
      rows.copy_row(local_rows[lane], scratch);
      pointers_[lane] = reinterpret_cast<const uint8_t*>(scratch);
    }
  }
  for (int lane = count; lane < kScoreLanes; ++lane) pointers_[lane] = pointers_[0];
}

void throw_row_not_finite(const Rows& rows, int64_t local, int64_t global) {
  std::vector<float> row(rows.dimension());
  rows.copy_row(local, row.data());
  const int64_t column = first_not_finite(row.data(), rows.dimension());
  throw Error(ErrorCode::kNotFinite, "row " + std::to_string(global) + " is NaN or infinite at column " + std::to_string(column), global,
              column);
}

void exact_scan(const SearchContext& context, const std::vector<const Shard*>& shards, const std::vector<ScoreQuery>& queries,
                const std::vector<TopK*>& top) {
  if (queries.empty()) return;
  const Index& index = context.index;
  std::unique_ptr<std::mutex[]> mutexes(new std::mutex[queries.size()]);
  for (const Shard* shard : shards) {
    const Rows& rows = *shard->rows;
    const SequentialReading reading(rows);
    context.pool.run((rows.rows() + kRowsPerItem - 1) / kRowsPerItem, [&](int64_t item) {
      context.check_cancelled();
      const int64_t end = std::min(rows.rows(), (item + 1) * kRowsPerItem);
      if (!context.filter.has_any(shard->first_row + item * kRowsPerItem, end - item * kRowsPerItem)) return;
      RowLanes lanes(index.dimension());
      for (int64_t row = item * kRowsPerItem; row < end;) {
        int64_t chosen[kScoreLanes];
        int count = 0;
        for (; row < end && count < kScoreLanes; ++row) {
          if (context.filter.has(shard->first_row + row)) chosen[count++] = row;
        }
        if (count == 0) continue;
        lanes.load(rows, chosen, count);
        for (size_t first = 0; first < queries.size(); first += kMaxSumQueries) {
          const auto together = static_cast<int>(std::min<size_t>(kMaxSumQueries, queries.size() - first));
          double scores[kMaxSumQueries][kScoreLanes];
          score_rows(index.metric(), context.kernels, &queries[first], together, lanes.pointers(), index.dimension(), scores[0]);
          for (int q = 0; q < together; ++q) {
            for (int lane = 0; lane < count; ++lane) {
              // Finite rows have finite scores, so this row contains NaN or infinity.
              if (!std::isfinite(scores[q][lane])) throw_row_not_finite(rows, chosen[lane], shard->first_row + chosen[lane]);
            }
            const std::lock_guard<std::mutex> lock(mutexes[first + q]);
            for (int lane = 0; lane < count; ++lane) {
              top[first + q]->push({scores[q][lane], shard->first_row + chosen[lane]});
            }
          }
        }
      }
    });
  }
}

}  // namespace trawl
