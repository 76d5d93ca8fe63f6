#include "trawl/gpu_codes.hpp"

#include <algorithm>
#include <cstring>

#include "base/cancel.hpp"
#include "dense/codes/query_pack.hpp"
#include "dense/codes/rounding.hpp"
#include "gpu/gpu_state.hpp"
#include "trawl/error.hpp"

namespace trawl {

using namespace cuda;

namespace {

constexpr int64_t kStagingBytes = int64_t{64} << 20;

int64_t padded_rows(int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

void write_numbers(const CodesBlock& block, Metric metric, double kappa, RowNumbers* out) {
  std::vector<float> bias(block.rows);
  row_test_biases(metric, block.bias_f64, block.norm_f32, block.rows, kappa, bias.data());
  for (int64_t i = 0; i < block.rows; ++i) {
    const bool kept = row_untestable(block.bias_f64[i], block.norm_f32[i], block.residual_f32[i]);
    out[i] = {block.scale_f32[i], block.residual_f32[i], kept ? static_cast<float>(kInfinity) : block.norm_f32[i], kept ? 0 : bias[i]};
  }
}

void check_options(const GpuOptions& options) {
  // A launch counts its hits in 32 bits, also those beyond the capacity.
  const bool fits = options.max_queries >= 1 && options.hit_capacity >= options.max_queries && options.hit_capacity <= UINT32_MAX / 2 &&
                    options.sample_divisor >= 1 && options.pairs_at_once >= 1 && options.pairs_at_once <= UINT32_MAX;
  if (fits) return;
  throw Error(ErrorCode::kBadArgument,
              "max_queries is " + std::to_string(options.max_queries) + ", hit_capacity " + std::to_string(options.hit_capacity) +
                  ", sample_divisor " + std::to_string(options.sample_divisor) + ", pairs_at_once " +
                  std::to_string(options.pairs_at_once) +
                  "; all must be at least 1, hit_capacity at least max_queries and below 2^31, pairs_at_once below 2^32");
}

}  // namespace

GpuLaunch::GpuLaunch(const GpuDevice& device, int64_t queries, int64_t capacity)
    : query_numbers(device, queries * static_cast<int64_t>(sizeof(QueryNumbers))),
      hits(device, capacity * static_cast<int64_t>(sizeof(DeviceHit))),
      count(device, 4),
      host_numbers(device, queries * static_cast<int64_t>(sizeof(QueryNumbers))),
      host_hits(device, capacity * static_cast<int64_t>(sizeof(DeviceHit))),
      host_count(device, 4),
      start(device),
      done(device),
      copied(device) {}

GpuCodes::State::State(const Index& index, const GpuOptions& options)
    : index(index), options(options), device(GpuDevice::open(options.library, options.device)) {
  device.use();
  max_queries = (options.max_queries + kWideQueries - 1) / kWideQueries * kWideQueries;
  for (const Shard& shard : index.shards()) {
    if (!shard.codes || shard.codes->rows() == 0) continue;
    padded = shard.codes->padded();
    most_rows = std::max(most_rows, padded_rows(shard.codes->rows()));
    shards.push_back({shard.codes, {}, {}});
  }
}

int64_t GpuCodes::State::bytes_needed() const {
  int64_t needed = max_queries * (9 * padded + 2 * static_cast<int64_t>(sizeof(QueryNumbers)) + 8 * kMostGroups) + most_rows / 8 +
                   2 * options.hit_capacity * static_cast<int64_t>(sizeof(DeviceHit));
  for (const GpuShard& shard : shards) needed += padded_rows(shard.codes->rows()) * (padded + static_cast<int64_t>(sizeof(RowNumbers)));
  return needed;
}

void GpuCodes::State::make_buffers() {
  stream = std::make_unique<StreamHandle>(device);
  copies = std::make_unique<StreamHandle>(device);
  start = std::make_unique<EventHandle>(device);
  done = std::make_unique<EventHandle>(device);
  digits_i8 = DeviceMemory(device, max_queries * padded);
  rotated_f64 = DeviceMemory(device, max_queries * padded * 8);
  maxima = DeviceMemory(device, max_queries * kMostGroups * 8);
  passing = DeviceMemory(device, most_rows / 8);
  host_digits = PinnedMemory(device, max_queries * padded);
  host_rotated = PinnedMemory(device, max_queries * padded * 8);
  host_maxima = PinnedMemory(device, max_queries * kMostGroups * 8);
  host_passing = PinnedMemory(device, most_rows / 8);
  for (auto& launch : launches) launch = std::make_unique<GpuLaunch>(device, max_queries, options.hit_capacity);
  device.clear(digits_i8.address(), max_queries * padded, *stream);
}

void GpuCodes::State::upload(ThreadPool& pool, const std::atomic<bool>* cancel) {
  const double kappa = kappa_f64(padded);
  const int64_t numbers_bytes = sizeof(RowNumbers), row_bytes = padded + numbers_bytes;
  for (GpuShard& shard : shards) {
    const CodesFile& codes = *shard.codes;
    const int64_t per_block = codes.rows_per_block(), rows = padded_rows(codes.rows());
    shard.codes_i8 = DeviceMemory(device, rows * padded);
    shard.row_numbers = DeviceMemory(device, rows * numbers_bytes);
    const int64_t blocks_at_once = std::min(codes.blocks(), std::max<int64_t>(1, kStagingBytes / (per_block * row_bytes)));
    const int64_t rows_at_once = blocks_at_once * per_block;
    PinnedMemory staging(device, rows_at_once * row_bytes);
    auto* const staged_codes = staging.as<int8_t>();
    auto* const staged_numbers = reinterpret_cast<RowNumbers*>(staged_codes + rows_at_once * padded);
    device.clear(shard.codes_i8.address(), rows * padded, *stream);
    device.clear(shard.row_numbers.address(), rows * numbers_bytes, *stream);
    for (int64_t first = 0; first < codes.blocks(); first += blocks_at_once) {
      check_cancelled(cancel);
      const int64_t blocks = std::min(blocks_at_once, codes.blocks() - first);
      pool.run(blocks, [&](int64_t i) {
        const CodesBlock block = codes.block(first + i);
        std::memcpy(staged_codes + i * per_block * padded, block.codes_i8, static_cast<size_t>(block.rows * padded));
        write_numbers(block, index.metric(), kappa, staged_numbers + i * per_block);
      });
      const int64_t first_row = first * per_block, count = std::min(blocks * per_block, codes.rows() - first_row);
      device.upload("the codes", shard.codes_i8.address() + static_cast<Address>(first_row * padded), staged_codes, count * padded,
                    *stream);
      device.upload("the codes", shard.row_numbers.address() + static_cast<Address>(first_row * numbers_bytes), staged_numbers,
                    count * numbers_bytes, *stream);
      stream->wait();
    }
  }
  stream->wait();
}

const GpuShard* GpuCodes::State::shard_of(const CodesFile* codes) const {
  for (const GpuShard& shard : shards) {
    if (shard.codes.get() == codes) return &shard;
  }
  return nullptr;
}

GpuCodes::GpuCodes(const Index& index, const GpuOptions& options, ThreadPool& pool, const std::atomic<bool>* cancel) {
  check_options(options);
  for (const Shard& shard : index.shards()) {
    if (shard.codes && shard.codes->rows() > UINT32_MAX - kTileRows) {
      throw Error(ErrorCode::kBadArgument, "a shard has " + std::to_string(shard.codes->rows()) +
                                               " rows, but on a GPU it may have 4,294,967,167; divide it, or search on the CPU");
    }
  }
  state_ = std::make_unique<State>(index, options);
  state_->bytes = state_->bytes_needed();
  const int64_t free = state_->device.free_bytes();
  if (state_->bytes > free) {
    throw Error(ErrorCode::kDeviceUnavailable, "the index needs " + std::to_string(state_->bytes) + " bytes on the GPU, but " +
                                                   state_->device.name + " has " + std::to_string(free) +
                                                   " bytes free; use a GPU with more memory, divide the index, or search on the CPU");
  }
  state_->make_buffers();
  state_->upload(pool, cancel);
}

GpuCodes::~GpuCodes() {
  try {
    state_->device.use();  // the members release their memory on this thread
  } catch (const Error&) {
    // The driver has lost the GPU, and its memory with it.
  }
}

const std::string& GpuCodes::device_name() const { return state_->device.name; }
const std::string& GpuCodes::driver_version() const { return state_->device.version; }
int64_t GpuCodes::bytes() const { return state_->bytes; }
int64_t GpuCodes::max_queries() const { return state_->options.max_queries; }
std::string GpuCodes::failure() const {
  const std::lock_guard<std::mutex> lock(state_->failure_mutex);
  return state_->failure;
}
bool GpuCodes::has_failed() const { return state_->failed; }
void GpuCodes::fail(const std::string& message) const {
  const std::lock_guard<std::mutex> lock(state_->failure_mutex);
  if (state_->failed) return;
  state_->failure = message;
  state_->failed = true;
}
GpuWork GpuCodes::work() const {
  const std::lock_guard<std::mutex> lock(state_->work_mutex);
  return state_->work;
}
void GpuCodes::reset_work() const {
  const std::lock_guard<std::mutex> lock(state_->work_mutex);
  state_->work = {};
}

}  // namespace trawl
