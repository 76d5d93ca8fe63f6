// The codes of an index in the memory of an NVIDIA GPU, where a search with them applies the row test. The CPU computes bounds and exact
// scores, so the answer has the same bits as without a GPU.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/index.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct GpuOptions {
  int64_t device = 0;              // number of the GPU, as the driver counts
  int64_t max_queries = 1024;      // in one pass over the codes; a larger batch needs several
  int64_t hit_capacity = 1 << 21;  // pairs that one launch may keep, at least max_queries; a launch with more is repeated in parts
  int64_t sample_divisor = 16;     // the first of each such number of tiles of rows is tested first, to raise the thresholds
  int64_t pairs_at_once = int64_t{1} << 31;  // of one launch, below 2^32: the thresholds rise between launches
  std::string library;                       // path of the driver's library; empty: the system's
};

// What the GPU did in the searches since the last reset.
struct GpuWork {
  double milliseconds = 0;         // of all launches, without waiting for the CPU
  double sample_milliseconds = 0;  // the part of them that raised the thresholds first
  int64_t launches = 0, repeated = 0, hits = 0;
};

// A GPU of this machine.
struct GpuFacts {
  std::string name;
  int64_t free_bytes = 0, total_bytes = 0;
  std::string problem;  // why it cannot be used for searches; empty: it can
};
struct GpuList {
  std::string driver_version;  // of CUDA, such as 13.0
  std::vector<GpuFacts> gpus;  // numbered from 0, as GpuOptions::device
};
// Throws kDeviceUnavailable without a driver. `library`: as in GpuOptions.
GpuList list_gpus(const std::string& library);

class GpuCodes {
 public:
  // Copies the codes of all shards that have some. Throws kDeviceUnavailable if the driver, the GPU or free memory is missing (with both
  // numbers); kCancelled soon after any thread has set *cancel; kBadArgument. The index must outlive the object.
  GpuCodes(const Index& index, const GpuOptions& options, ThreadPool& pool, const std::atomic<bool>* cancel = nullptr);
  ~GpuCodes();
  GpuCodes(const GpuCodes&) = delete;
  GpuCodes& operator=(const GpuCodes&) = delete;

  const std::string& device_name() const;
  const std::string& driver_version() const;  // of CUDA, such as 13.0
  int64_t bytes() const;                      // of the GPU's memory
  int64_t max_queries() const;                // in one pass over the codes
  // The first error of the GPU in a search, which then ran on the CPU, as all later ones do. Empty: there was none.
  std::string failure() const;
  bool has_failed() const;
  void fail(const std::string& message) const;  // for scan_on_gpu()
  GpuWork work() const;
  void reset_work() const;

  struct State;
  State& state() const { return *state_; }  // for scan_on_gpu()

 private:
  std::unique_ptr<State> state_;
};

}  // namespace trawl
