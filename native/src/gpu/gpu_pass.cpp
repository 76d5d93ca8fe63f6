#include "gpu/gpu_pass.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace trawl {

using namespace cuda;

namespace {

constexpr int64_t kScanBlocks = 32, kDotBlocks = 8;  // for each multiprocessor, where blocks take more work until none is left

}  // namespace

GpuPass::GpuPass(const SearchContext& context, GpuCodes::State& gpu, const GpuShard& on_gpu, const Shard& shard,
                 const PackedQueries& packed, const int64_t* numbers, int64_t count, const States& states, bool filtered)
    : context_(context),
      gpu_(gpu),
      on_gpu_(on_gpu),
      shard_(shard),
      codes_(*shard.codes),
      packed_(packed),
      numbers_(numbers),
      count_(count),
      states_(states),
      filtered_(filtered),
      passing_(context.filter.count(shard.first_row, shard.codes->rows())),
      sampled_(count) {}

void GpuPass::run() {
  context_.check_cancelled();
  upload_queries();
  if (worth_sampling()) sample();
  const auto rows = static_cast<uint32_t>(codes_.rows());
  uint32_t at = 0;
  GpuLaunch *running = nullptr, *next = gpu_.launches[0].get(), *other = gpu_.launches[1].get();
  while (at < rows || running != nullptr) {
    GpuLaunch* started = nullptr;
    if (at < rows) {
      context_.check_cancelled();
      started = next;
      const auto end = static_cast<uint32_t>(std::min<int64_t>(rows, at + rows_at_once()));
      launch(*started, at, end);
      at = end;
      std::swap(next, other);
    }
    if (running != nullptr) finish(*running);
    running = started;
  }
}

void GpuPass::to_host(void* to, Address from, int64_t bytes, const StreamHandle& stream) const {
  gpu_.device.driver.check(gpu_.device.driver.copy_to_host(to, from, static_cast<size_t>(bytes), stream.get()), "return hits");
}

void GpuPass::upload_queries() {
  const int64_t padded = packed_.padded;
  auto* const digits = gpu_.host_digits.as<int8_t>();
  auto* const rotated = gpu_.host_rotated.as<double>();
  const int8_t offset = static_cast<int8_t>(packed_.kernels.rows_offset ? -128 : 0);
  const auto copy = [&](int64_t i) {
    const int8_t* const from = packed_.row_order_i8.data() + numbers_[i] * padded;
    for (int64_t j = 0; j < padded; ++j) digits[i * padded + j] = static_cast<int8_t>(from[j] ^ offset);
    std::memcpy(rotated + i * padded, packed_.rotated_f64.data() + numbers_[i] * padded, static_cast<size_t>(padded) * 8);
  };
  if (count_ < 16) {
    for (int64_t i = 0; i < count_; ++i) copy(i);
  } else {
    context_.pool.run(count_, copy);
  }
  gpu_.device.upload("queries", gpu_.digits_i8.address(), digits, count_ * padded, *gpu_.stream);
  gpu_.device.upload("queries", gpu_.rotated_f64.address(), rotated, count_ * padded * 8, *gpu_.stream);
}

void GpuPass::upload_numbers(GpuLaunch& launch) {
  auto* const numbers = launch.host_numbers.as<QueryNumbers>();
  for (int64_t i = 0; i < count_; ++i) {
    const QueryBound& b = bound(i);
    numbers[i] = {b.phi_f32, b.test_a_f32, b.test_n_f32, b.theta(state(i).tau())};
  }
  gpu_.device.upload("queries", launch.query_numbers.address(), numbers, count_ * static_cast<int64_t>(sizeof(QueryNumbers)), *gpu_.stream);
}

ScanArguments GpuPass::arguments(const GpuLaunch& launch) const {
  ScanArguments scan = {};
  scan.codes_i8 = on_gpu_.codes_i8.as<int8_t>();
  scan.row_numbers = on_gpu_.row_numbers.as<RowNumbers>();
  scan.passing = filtered_ ? gpu_.passing.as<uint32_t>() : nullptr;
  scan.digits_i8 = gpu_.digits_i8.as<int8_t>();
  scan.rotated_f64 = gpu_.rotated_f64.as<double>();
  scan.query_numbers = launch.query_numbers.as<QueryNumbers>();
  scan.hits = launch.hits.as<DeviceHit>();
  scan.count = launch.count.as<uint32_t>();
  scan.maxima = gpu_.maxima.as<unsigned long long>();
  scan.padded = packed_.padded;
  scan.queries = static_cast<uint32_t>(count_);
  scan.capacity = static_cast<uint32_t>(gpu_.options.hit_capacity);
  return scan;
}

void GpuPass::start_hits(const ScanArguments& scan) {
  const int lanes = count_ == 1 ? 1 : count_ <= 4 ? 4 : kMostFew;
  const int64_t shared = shared_bytes_few(lanes, packed_.padded);
  if (count_ > kMostFew || shared > gpu_.device.shared_bytes) return start_many(scan, kHitsNarrow, kHitsWide);
  const int64_t blocks = std::min<int64_t>(scan.tiles, kScanBlocks * gpu_.device.multiprocessors);
  gpu_.device.launch(lanes == 1 ? kHitsFew1 : lanes == 4 ? kHitsFew4 : kHitsFew8, blocks, shared, gpu_.stream->get(), &scan);
}

void GpuPass::start_many(const ScanArguments& scan, const char* narrow, const char* wide) {
  const int tile = count_ <= kNarrowQueries ? kNarrowQueries : kWideQueries;
  gpu_.device.launch(tile == kNarrowQueries ? narrow : wide, scan.tiles * ((count_ + tile - 1) / tile), shared_bytes_many(tile),
                     gpu_.stream->get(), &scan);
}

int64_t GpuPass::rows_at_once() const {
  int64_t without = 0;
  for (int64_t i = 0; i < count_; ++i) without += state(i).tau() == -kInfinity;
  int64_t rows = gpu_.options.pairs_at_once / count_;
  if (without > 0) {
    const double kept = static_cast<double>(without) * static_cast<double>(passing_) / static_cast<double>(codes_.rows());  // by a row
    rows = static_cast<int64_t>(std::fmin(static_cast<double>(rows), static_cast<double>(gpu_.options.hit_capacity) / (2 * kept)));
  }
  const int64_t tiles = rows / kTileRows;
  if (tiles == 0) return std::max<int64_t>(rows, 1);
  // Launches of equal size.
  const int64_t launches = (codes_.rows() + tiles * kTileRows - 1) / (tiles * kTileRows);
  const int64_t equal = (codes_.rows() + launches * kTileRows - 1) / (launches * kTileRows);
  return equal * kTileRows;
}

void GpuPass::launch(GpuLaunch& launch, uint32_t begin, uint32_t end) {
  launch.begin = begin;
  launch.end = end;
  upload_numbers(launch);
  gpu_.device.clear(launch.count.address(), 4, *gpu_.stream);
  ScanArguments scan = arguments(launch);
  scan.begin = begin;
  scan.end = end;
  scan.first_tile = begin / kTileRows;
  scan.tile_stride = 1;
  scan.tiles = (end - 1) / kTileRows - scan.first_tile + 1;
  launch.start.record(*gpu_.stream);
  start_hits(scan);
  gpu_.device.launch(kDots, kDotBlocks * gpu_.device.multiprocessors, 0, gpu_.stream->get(), &scan);
  launch.done.record(*gpu_.stream);
  to_host(launch.host_count.as<uint32_t>(), launch.count.address(), 4, *gpu_.stream);
  to_host(launch.host_hits.as<DeviceHit>(), launch.hits.address(),
          std::min(kFirstHits, gpu_.options.hit_capacity) * static_cast<int64_t>(sizeof(DeviceHit)), *gpu_.stream);
  launch.copied.record(*gpu_.stream);
}

}  // namespace trawl
