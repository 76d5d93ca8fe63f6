#include "gpu/gpu_scan.hpp"

#include <algorithm>
#include <chrono>

#include "dense/search/codes_scan.hpp"
#include "gpu/gpu_pass.hpp"
#include "trawl/error.hpp"

namespace trawl {

using namespace cuda;

namespace {

constexpr std::chrono::milliseconds kCancelWait(10);  // between looks at the cancel flag, while another search uses the GPU

// The search has given the GPU work that may still run: wait for it before buffers are reused, also after an exception.
struct Finished {
  explicit Finished(GpuCodes::State& gpu) : gpu(gpu) {}
  ~Finished() {
    gpu.device.driver.stream_wait(gpu.stream->get());
    gpu.device.driver.stream_wait(gpu.copies->get());
  }
  GpuCodes::State& gpu;
};

// Uploads the bitmap of the shard's rows that pass. Returns whether there is one.
bool upload_passing(const SearchContext& context, GpuCodes::State& gpu, const Shard& shard) {
  if (context.filter.passes_all()) return false;
  auto* const words = gpu.host_passing.as<uint64_t>();
  const int64_t rows = shard.codes->rows(), count = (rows + kTileRows - 1) / kTileRows * kTileRows / 64;
  for (int64_t word = 0; word < count; ++word) {
    const int64_t first = word * 64;
    words[word] = first < rows ? context.filter.word(shard.first_row + first, std::min<int64_t>(64, rows - first)) : 0;
  }
  gpu.device.upload("a filter", gpu.passing.address(), words, count * 8, *gpu.stream);
  return true;
}

// The passes of the queries in `numbers`, by the search that holds the GPU.
void run_passes(const SearchContext& context, GpuCodes::State& gpu, const GpuShard& on_gpu, const Shard& shard, const PackedQueries& packed,
                const std::vector<int64_t>& numbers, const States& states) {
  gpu.device.use();
  const Finished finished(gpu);
  const bool filtered = upload_passing(context, gpu, shard);
  const auto all = static_cast<int64_t>(numbers.size());
  for (int64_t first = 0; first < all; first += gpu.options.max_queries) {
    const int64_t count = std::min(gpu.options.max_queries, all - first);
    GpuPass(context, gpu, on_gpu, shard, packed, numbers.data() + first, count, states, filtered).run();
  }
}

// A query whose row test could overflow float32 keeps every row, so the GPU cannot help it.
void scan_untestable(const SearchContext& context, const Shard& shard, const PackMean& mean, const double* queries_f64,
                     const std::vector<int64_t>& numbers, const States& states) {
  const std::vector<double> queries = gather_queries(queries_f64, mean.dimension, numbers);
  States some;
  for (const int64_t q : numbers) some.push_back(states[q]);
  const PackedQueries packed(CodesPacker(mean), queries.data(), static_cast<int64_t>(numbers.size()), context.choice, context.pool);
  CodesScan scan(context, shard, mean, packed, some);
  context.pool.run(shard.codes->blocks(), [&](int64_t block) { scan.block(block); });
}

}  // namespace

void scan_on_gpu(const SearchContext& context, const Shard& shard, const PackMean& mean, const PackedQueries& packed,
                 const double* queries_f64, const States& states) {
  GpuCodes::State& gpu = context.options.gpu->state();
  const GpuShard* const on_gpu = gpu.shard_of(shard.codes.get());
  if (on_gpu == nullptr) {
    throw Error(ErrorCode::kBadArgument, "the GPU has the codes of another index; upload the codes of this one");
  }
  std::vector<int64_t> testable, untestable;
  for (int64_t q = 0; q < packed.count; ++q) {
    if (!states[q]->needs_full_scan()) (packed.row_order.bounds[q].testable ? testable : untestable).push_back(q);
  }
  if (!testable.empty()) {
    std::unique_lock<std::timed_mutex> lock(gpu.mutex, std::defer_lock);
    while (!lock.try_lock_for(kCancelWait)) context.check_cancelled();
    if (context.options.gpu->has_failed()) throw Error(ErrorCode::kDeviceUnavailable, "the GPU has failed in another search");
    try {
      run_passes(context, gpu, *on_gpu, shard, packed, testable, states);
    } catch (const Error& error) {
      // Before another search gets the GPU.
      if (error.code == ErrorCode::kDeviceUnavailable) context.options.gpu->fail(error.what());
      throw;
    }
  }
  if (!untestable.empty()) scan_untestable(context, shard, mean, queries_f64, untestable, states);
}

}  // namespace trawl
