#include "dense/search/scan_codes.hpp"

#include <memory>

#include "dense/codes/query_pack.hpp"
#include "dense/search/codes_scan.hpp"
#include "dense/search/prefiltered_shard.hpp"
#include "gpu/gpu_scan.hpp"

namespace trawl {

namespace {

bool worth_prefiltering(const PrefilterPolicy& policy, const PackedQueries& packed) {
  return policy.use && (policy.always || packed.count < packed.kernels.codes_alone_from);
}

}  // namespace

void scan_codes(const SearchContext& context, const double* queries, std::vector<QueryState>& states) {
  States pointers;
  for (QueryState& state : states) pointers.push_back(&state);
  std::unique_ptr<PackMean> mean;
  std::unique_ptr<PackedQueries> packed;
  for (const Shard& shard : context.index.shards()) {
    if (!shard.codes || !context.filter.has_any(shard.first_row, shard.codes->rows())) continue;
    // Codes are quantised differences of the rows from a mean. A packed query is centred and bounded for that mean (query_pack.hpp),
    // so the queries are packed again for a shard with another mean.
    if (!mean || !mean->matches(*shard.codes)) {
      packed.reset();
      mean = std::make_unique<PackMean>(context.index.metric(), *shard.codes);
      packed =
          std::make_unique<PackedQueries>(CodesPacker(*mean), queries, static_cast<int64_t>(states.size()), context.choice, context.pool);
    }
    if (context.options.gpu != nullptr) {
      scan_on_gpu(context, shard, *mean, *packed, queries, pointers);
    } else if (shard.prefilter && worth_prefiltering(context.options.prefilter, *packed)) {
      scan_prefiltered(context, shard, *mean, *packed, queries, pointers);
    } else {
      CodesScan scan(context, shard, *mean, *packed, pointers);
      context.pool.run(shard.codes->blocks(), [&](int64_t block) { scan.block(block); });
    }
  }
}

}  // namespace trawl
