#include <algorithm>
#include <functional>

#include "gpu/gpu_pass.hpp"

namespace trawl {

using namespace cuda;

int64_t GpuPass::groups_wanted() const {
  int64_t groups = 64;
  while (groups < 4 * context_.options.k && groups < kMostGroups) groups *= 2;
  return groups;
}

bool GpuPass::worth_sampling() const {
  if (2 * context_.options.k > groups_wanted()) return false;
  if (shard_.first_row < codes_.rows() / 4) return true;
  for (int64_t i = 0; i < count_; ++i) {
    if (state(i).tau() == -kInfinity) return true;
  }
  return false;
}

void GpuPass::sample() {
  context_.check_cancelled();
  const int64_t groups = groups_wanted(), tiles = (codes_.rows() + kTileRows - 1) / kTileRows;
  const int64_t wanted = std::max(tiles / gpu_.options.sample_divisor, std::min(tiles, groups / (kTileRows / kGroupRows)));
  GpuLaunch& launch = *gpu_.launches[0];
  upload_numbers(launch);
  ScanArguments scan = arguments(launch);
  scan.end = static_cast<uint32_t>(codes_.rows());
  scan.tile_stride = static_cast<uint32_t>(std::max<int64_t>(1, tiles / wanted));
  scan.tiles = static_cast<uint32_t>((tiles + scan.tile_stride - 1) / scan.tile_stride);
  scan.groups = static_cast<uint32_t>(groups);
  gpu_.device.clear(gpu_.maxima.address(), count_ * groups * 8, *gpu_.stream);
  gpu_.start->record(*gpu_.stream);
  start_many(scan, kSampleNarrow, kSampleWide);
  gpu_.done->record(*gpu_.stream);
  auto* const maxima = gpu_.host_maxima.as<uint64_t>();
  to_host(maxima, gpu_.maxima.address(), count_ * groups * 8, *gpu_.stream);
  gpu_.stream->wait();
  const auto offer = [&](int64_t i) { offer_sampled(i, maxima + i * groups, groups); };
  if (count_ < 4) {
    for (int64_t i = 0; i < count_; ++i) offer(i);
  } else {
    context_.pool.run(count_, offer);
  }
  const std::lock_guard<std::mutex> lock(gpu_.work_mutex);
  const double milliseconds = gpu_.done->milliseconds_since(*gpu_.start);
  gpu_.work.milliseconds += milliseconds;
  gpu_.work.sample_milliseconds += milliseconds;
  ++gpu_.work.launches;
}

void GpuPass::offer_sampled(int64_t i, uint64_t* maxima, int64_t groups) {
  uint64_t* const end = std::remove(maxima, maxima + groups, uint64_t{0});
  // Rows just below the k-th may have better bounds, so a few more are tried.
  const int64_t count = std::min<int64_t>(end - maxima, context_.options.k + context_.options.k / 2 + 8);
  std::partial_sort(maxima, maxima + count, end, std::greater<uint64_t>());
  std::vector<uint32_t>& rows = sampled_[i];
  const int64_t per_block = codes_.rows_per_block();
  for (int64_t at = 0; at < count; ++at) {
    const uint32_t row = row_of_key(maxima[at]);
    rows.push_back(row);
    refine_pair(shard_, codes_.block(row / per_block), row % per_block, packed_, numbers_[i], state(i), context_.kernels);
  }
  std::sort(rows.begin(), rows.end());
}

}  // namespace trawl
