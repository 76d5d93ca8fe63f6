#include "scan_codes.hpp"

#include <algorithm>

#include "codes_scan.hpp"
#include "screened_shard.hpp"

namespace trawl {

bool filter_has_any(const uint64_t* bits, int64_t first, int64_t count) {
  if (bits == nullptr) return true;
  for (int64_t row = first; row < first + count;) {
    const int64_t in_word = row & 63, take = std::min<int64_t>(64 - in_word, first + count - row);
    const uint64_t mask = (take == 64 ? ~uint64_t{0} : (uint64_t{1} << take) - 1) << in_word;
    if ((bits[row >> 6] & mask) != 0) return true;
    row += take;
  }
  return false;
}

void scan_codes(const Index& index, const double* queries, std::vector<QueryState>& states,
                const SearchOptions& options, const Kernels& kernels, ThreadPool& pool) {
  States pointers;
  for (QueryState& state : states) pointers.push_back(&state);
  std::unique_ptr<PackMean> mean;
  std::unique_ptr<PackedQueries> packed;
  for (const Shard& shard : index.shards()) {
    if (!shard.codes || shard.codes->rows() == 0) continue;
    if (!mean || !mean->matches(*shard.codes)) {
      packed.reset();
      mean = std::make_unique<PackMean>(index.metric(), *shard.codes);
      packed = std::make_unique<PackedQueries>(CodesPacker(*mean), queries, static_cast<int64_t>(states.size()), kernels, pool);
    }
    if (shard.screen && options.screen.use) {
      scan_screened(shard, *mean, *packed, queries, pointers, options, kernels, pool);
    } else {
      CodesScan scan(shard, *mean, *packed, pointers, options, kernels);
      pool.run(shard.codes->blocks(), [&](int64_t block) { scan.block(block); });
    }
  }
}

}  // namespace trawl
