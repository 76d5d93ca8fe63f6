#include "gpu_scan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "codes_scan.hpp"
#include "gpu_state.hpp"
#include "trawl/error.hpp"

namespace trawl {

using namespace cuda;

namespace {

constexpr int64_t kHitsOfItem = 2048;  // bounded by one thread at once
constexpr int64_t kScanBlocks = 32, kDotBlocks = 8;  // for each multiprocessor, where blocks take more work until none is left
constexpr std::chrono::milliseconds kCancelWait(10);  // between looks at the cancel flag, while another search uses the GPU
constexpr int64_t kAhead = 12;         // hits whose rows' numbers are prefetched

// The search has given the GPU work that may still run: wait for it before buffers are reused, also after an exception.
struct Finished {
  explicit Finished(GpuCodes::State& gpu) : gpu(gpu) {}
  ~Finished() {
    gpu.device.driver.stream_wait(gpu.stream->get());
    gpu.device.driver.stream_wait(gpu.copies->get());
  }
  GpuCodes::State& gpu;
};

// At most max_queries queries of a search, over one shard. Every query is testable.
class GpuScan {
 public:
  GpuScan(const SearchContext& context, GpuCodes::State& gpu, const GpuShard& on_gpu, const Shard& shard, const PackedQueries& packed,
          const int64_t* numbers, int64_t count, const States& states, bool filtered)
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

  void run() {
    context_.check_cancelled();
    upload_queries();
    if (sample_pays()) sample();
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

 private:
  QueryState& state(int64_t i) const { return *states_[numbers_[i]]; }
  const QueryBound& bound(int64_t i) const { return packed_.bounds[numbers_[i]]; }

  void to_device(Address to, const void* from, int64_t bytes) const {
    gpu_.device.driver.check(gpu_.device.driver.copy_to_device(to, from, static_cast<size_t>(bytes), gpu_.stream->get()), "take queries");
  }
  void to_host(void* to, Address from, int64_t bytes, const StreamHandle& stream) const {
    gpu_.device.driver.check(gpu_.device.driver.copy_to_host(to, from, static_cast<size_t>(bytes), stream.get()), "return hits");
  }

  void upload_queries() {
    const int64_t padded = packed_.padded;
    auto* const digits = gpu_.host_digits.as<int8_t>();
    auto* const rotated = gpu_.host_rotated.as<double>();
    const int8_t offset = static_cast<int8_t>(packed_.kernels.rows_offset ? -128 : 0);
    const auto copy = [&](int64_t i) {
      const int8_t* const from = packed_.natural_i8.data() + numbers_[i] * padded;
      for (int64_t j = 0; j < padded; ++j) digits[i * padded + j] = static_cast<int8_t>(from[j] ^ offset);
      std::memcpy(rotated + i * padded, packed_.rotated_f64.data() + numbers_[i] * padded, static_cast<size_t>(padded) * 8);
    };
    if (count_ < 16) {
      for (int64_t i = 0; i < count_; ++i) copy(i);
    } else {
      context_.pool.run(count_, copy);
    }
    to_device(gpu_.digits_i8.address(), digits, count_ * padded);
    to_device(gpu_.rotated_f64.address(), rotated, count_ * padded * 8);
  }

  void upload_numbers(GpuLaunch& launch) {
    auto* const numbers = launch.host_numbers.as<QueryNumbers>();
    for (int64_t i = 0; i < count_; ++i) {
      const QueryBound& b = bound(i);
      numbers[i] = {b.phi_f32, b.test_a_f32, b.test_n_f32, b.theta(state(i).tau())};
    }
    to_device(launch.query_numbers.address(), numbers, count_ * static_cast<int64_t>(sizeof(QueryNumbers)));
  }

  ScanArguments arguments(const GpuLaunch& launch) const {
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

  void start_hits(const ScanArguments& scan) {
    const int lanes = count_ == 1 ? 1 : count_ <= 4 ? 4 : kMostFew;
    const int64_t shared = shared_bytes_few(lanes, packed_.padded);
    if (count_ > kMostFew || shared > gpu_.device.shared_bytes) return start_many(scan, kHitsNarrow, kHitsWide);
    const int64_t blocks = std::min<int64_t>(scan.tiles, kScanBlocks * gpu_.device.multiprocessors);
    gpu_.device.launch(lanes == 1 ? kHitsFew1 : lanes == 4 ? kHitsFew4 : kHitsFew8, blocks, shared, gpu_.stream->get(), &scan);
  }

  void start_many(const ScanArguments& scan, const char* narrow, const char* wide) {
    const int tile = count_ <= kNarrowQueries ? kNarrowQueries : kWideQueries;
    gpu_.device.launch(tile == kNarrowQueries ? narrow : wide, scan.tiles * ((count_ + tile - 1) / tile), shared_bytes_many(tile),
                       gpu_.stream->get(), &scan);
  }

  int64_t groups_wanted() const {
    int64_t groups = 64;
    while (groups < 4 * context_.options.k && groups < kMostGroups) groups *= 2;
    return groups;
  }

  // Not if earlier shards have raised all thresholds far enough, or k is so large that the sample cannot raise them.
  bool sample_pays() const {
    if (2 * context_.options.k > groups_wanted()) return false;
    if (shard_.first_row < codes_.rows() / 4) return true;
    for (int64_t i = 0; i < count_; ++i) {
      if (state(i).tau() == -kInfinity) return true;
    }
    return false;
  }

  // Raises the thresholds by the rows with the largest v of evenly spread tiles: of each group of rows the one with the largest.
  void sample() {
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
    gpu_.device.driver.check(
        gpu_.device.driver.set_words(gpu_.maxima.address(), 0, static_cast<size_t>(count_ * groups * 2), gpu_.stream->get()), "clear memory");
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

  void offer_sampled(int64_t i, uint64_t* maxima, int64_t groups) {
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

  // Few enough that the thresholds rise between launches, and at first that even a query without a threshold, which keeps every row,
  // hardly fills the buffer.
  int64_t rows_at_once() const {
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

  void launch(GpuLaunch& launch, uint32_t begin, uint32_t end) {
    launch.begin = begin;
    launch.end = end;
    upload_numbers(launch);
    gpu_.device.driver.check(gpu_.device.driver.set_words(launch.count.address(), 0, 1, gpu_.stream->get()), "clear memory");
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

  // Waits for the launch and bounds its hits.
  void finish(GpuLaunch& launched) {
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
    const auto bound_some = [&](int64_t item) {
      bound_hits(hits + item * kHitsOfItem, std::min(kHitsOfItem, count - item * kHitsOfItem));
    };
    if (items == 1) {
      bound_some(0);
    } else if (items > 1) {
      context_.pool.run(items, bound_some);
    }
  }

  // None of the hits of a launch with a full buffer was used. A part of one row fits, because the capacity is at least the number of
  // queries.
  void repeat_in_parts(GpuLaunch& launched) {
    const uint32_t begin = launched.begin, end = launched.end, part = (end - begin + 7) / 8;
    for (uint32_t at = begin; at < end; at += part) {
      context_.check_cancelled();
      launch(launched, at, std::min(end, at + part));
      finish(launched);
    }
  }

  void bound_hits(const DeviceHit* hits, int64_t count) {
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
#ifdef TRAWL_MUTATE_LOSE_CANDIDATE
      if ((shard_.first_row + hit.row) % 97 == 96) continue;
#endif
      offer_pair(shard_, codes_.block(hit.row / per_block), hit.row % per_block, bound(hit.query), hit.dot_f64, state(hit.query));
    }
  }

  const SearchContext& context_;
  GpuCodes::State& gpu_;
  const GpuShard& on_gpu_;
  const Shard& shard_;
  const CodesFile& codes_;
  const PackedQueries& packed_;
  const int64_t* numbers_;  // of the queries in `packed`
  int64_t count_;
  const States& states_;
  bool filtered_;
  int64_t passing_;  // rows of the shard
  std::vector<std::vector<uint32_t>> sampled_;  // rows that the sample has offered to each query, sorted
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
  gpu.device.driver.check(
      gpu.device.driver.copy_to_device(gpu.passing.address(), words, static_cast<size_t>(count) * 8, gpu.stream->get()), "take a filter");
  return true;
}

// A query whose row test could overflow float32 keeps every row, so the GPU cannot help it.
void scan_untestable(const SearchContext& context, const Shard& shard, const PackMean& mean, const double* queries_f64,
                     const std::vector<int64_t>& numbers, const States& states) {
  std::vector<double> queries(numbers.size() * mean.dimension);
  States some;
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::copy(queries_f64 + numbers[i] * mean.dimension, queries_f64 + (numbers[i] + 1) * mean.dimension,
              queries.data() + static_cast<int64_t>(i) * mean.dimension);
    some.push_back(states[numbers[i]]);
  }
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
    throw Error(ErrorCode::kBadArgument, "the GPU has the codes of another index; upload those of this one");
  }
  std::vector<int64_t> testable, untestable;
  for (int64_t q = 0; q < packed.count; ++q) {
    if (!states[q]->gave_up()) (packed.bounds[q].testable ? testable : untestable).push_back(q);
  }
  if (!testable.empty()) {
    std::unique_lock<std::timed_mutex> lock(gpu.mutex, std::defer_lock);
    while (!lock.try_lock_for(kCancelWait)) context.check_cancelled();
    if (context.options.gpu->has_failed()) throw Error(ErrorCode::kDeviceUnavailable, "the GPU has failed in another search");
    gpu.device.use();
    const Finished finished(gpu);
    const bool filtered = upload_passing(context, gpu, shard);
    const auto all = static_cast<int64_t>(testable.size());
    for (int64_t first = 0; first < all; first += gpu.options.max_queries) {
      const int64_t count = std::min(gpu.options.max_queries, all - first);
      GpuScan(context, gpu, *on_gpu, shard, packed, testable.data() + first, count, states, filtered).run();
    }
  }
  if (!untestable.empty()) scan_untestable(context, shard, mean, queries_f64, untestable, states);
}

}  // namespace trawl
