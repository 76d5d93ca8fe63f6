#include <algorithm>

#include "gpu/gpu_pass.hpp"

namespace trawl {

using namespace cuda;

namespace {

constexpr int64_t kHitsOfItem = 2048;  // bounded by one thread at once
constexpr int64_t kAhead = 12;         // hits whose rows' numbers are prefetched

}  // namespace

void GpuPass::finish(GpuLaunch& launched) {
  launched.copied.wait();
  const int64_t count = *launched.host_count.as<uint32_t>();
  const bool full = count > gpu_.options.hit_capacity;
  {
    const std::lock_guard<std::mutex> lock(gpu_.work_mutex);
    gpu_.work.milliseconds += launched.done.milliseconds_since(launched.start);
    ++gpu_.work.launches;
    gpu_.work.repeated += full;
    gpu_.work.hits += full ? 0 : count;
  }
  if (full) return repeat_in_parts(launched);
  auto* const hits = launched.host_hits.as<DeviceHit>();
  if (count > kFirstHits) {
    to_host(hits + kFirstHits, launched.hits.address() + kFirstHits * sizeof(DeviceHit),
            (count - kFirstHits) * static_cast<int64_t>(sizeof(DeviceHit)), *gpu_.copies);
    gpu_.copies->wait();
  }
  const int64_t items = (count + kHitsOfItem - 1) / kHitsOfItem;
  const auto bound_some = [&](int64_t item) { bound_hits(hits + item * kHitsOfItem, std::min(kHitsOfItem, count - item * kHitsOfItem)); };
  if (items == 1) {
    bound_some(0);
  } else if (items > 1) {
    context_.pool.run(items, bound_some);
  }
}

void GpuPass::repeat_in_parts(GpuLaunch& launched) {
  const uint32_t begin = launched.begin, end = launched.end, part = (end - begin + 7) / 8;
  for (uint32_t at = begin; at < end; at += part) {
    context_.check_cancelled();
    launch(launched, at, std::min(end, at + part));
    finish(launched);
  }
}

void GpuPass::bound_hits(const DeviceHit* hits, int64_t count) {
  const int64_t per_block = codes_.rows_per_block();
  for (int64_t h = 0; h < count; ++h) {
    if (h + kAhead < count) {
      const CodesBlock block = codes_.block(hits[h + kAhead].row / per_block);
      const int64_t local = hits[h + kAhead].row % per_block;
      __builtin_prefetch(block.scale_f32 + local);
      __builtin_prefetch(block.residual_f32 + local);
      __builtin_prefetch(block.norm_f32 + local);
      __builtin_prefetch(block.bias_f64 + local);
    }
    const DeviceHit& hit = hits[h];
    const std::vector<uint32_t>& sampled = sampled_[hit.query];
    // A row counts once in the lower bounds that set tau.
    if (std::binary_search(sampled.begin(), sampled.end(), hit.row)) continue;
    add_pair(shard_, codes_.block(hit.row / per_block), hit.row % per_block, bound(hit.query), hit.dot_f64, state(hit.query));
  }
}

}  // namespace trawl
