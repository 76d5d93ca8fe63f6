// What a GpuCodes has on its GPU, and the buffers of the search in progress.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/cuda_kernels.hpp"
#include "gpu/gpu_device.hpp"
#include "trawl/gpu_codes.hpp"

namespace trawl {

struct GpuShard {
  std::shared_ptr<const CodesFile> codes;
  cuda::DeviceMemory codes_i8, row_numbers;
};

// The buffers of one launch. While one runs, the hits of the one before are bounded.
struct GpuLaunch {
  GpuLaunch(const cuda::GpuDevice& device, int64_t queries, int64_t capacity);
  cuda::DeviceMemory query_numbers, hits, count;
  cuda::PinnedMemory host_numbers, host_hits, host_count;
  cuda::EventHandle start, done, copied;
  uint32_t begin = 0, end = 0;
};

// With this number of hits, one copy brings all of them.
constexpr int64_t kFirstHits = 4096;
constexpr int64_t kMostGroups = 4096;  // of a query's maxima

struct GpuCodes::State {
  State(const Index& index, const GpuOptions& options);
  const GpuShard* shard_of(const CodesFile* codes) const;
  int64_t bytes_needed() const;
  void make_buffers();
  void upload(ThreadPool& pool, const std::atomic<bool>* cancel);

  const Index& index;
  const GpuOptions options;
  cuda::GpuDevice& device;
  int64_t padded = 0, max_queries = 0, most_rows = 0, bytes = 0;  // max_queries: a multiple of kWideQueries
  std::vector<GpuShard> shards;
  std::unique_ptr<cuda::StreamHandle> stream, copies;
  std::unique_ptr<GpuLaunch> launches[2];
  std::unique_ptr<cuda::EventHandle> start, done;  // of the sample
  cuda::DeviceMemory digits_i8, rotated_f64, maxima, passing;
  cuda::PinnedMemory host_digits, host_rotated, host_maxima, host_passing;
  std::timed_mutex mutex;  // held by the search that uses the GPU
  GpuWork work;
  std::mutex work_mutex;
  std::atomic<bool> failed{false};
  std::string failure;  // the first
  std::mutex failure_mutex;
};

}  // namespace trawl
