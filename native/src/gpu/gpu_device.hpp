// One GPU: its context, kernels, memory, streams and events, which are released with their objects.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "gpu/cuda_driver.hpp"

namespace trawl::cuda {

// The driver's version of CUDA, such as 13.0. Starts the driver.
std::string start_driver(const Driver& driver);
// Why a GPU cannot be used for searches; empty if it can.
std::string capability_problem(const Driver& driver, Device device);

class GpuDevice {
 public:
  // The same object for every caller, until the process ends: the driver takes seconds to compile the kernels, unless it finds them
  // in its cache. Throws kDeviceUnavailable.
  static GpuDevice& open(const std::string& library, int64_t ordinal);
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  // Every thread calls it before it uses the GPU.
  void use() const { driver.check(driver.context_set(context_), "use its context"); }
  int64_t free_bytes() const;
  // Launches `blocks` blocks of kThreads threads. `arguments`: the kernel's one argument.
  void launch(const char* kernel, int64_t blocks, int64_t shared_bytes, Stream* stream, const void* arguments);

  const Driver& driver;
  std::string name, version;
  int multiprocessors = 0, shared_bytes = 0;  // shared_bytes: the most of one block

 private:
  GpuDevice(const std::string& library, int64_t ordinal);
  void load_kernels();
  struct Kernel {
    Function* function = nullptr;
    int64_t shared_bytes = 48 * 1024;  // that a launch may ask for; it only rises, for launches of several threads
  };
  Function* function(const char* kernel, int64_t shared_bytes);
  Device device_ = 0;
  Context* context_ = nullptr;
  Module* module_ = nullptr;
  std::map<std::string, Kernel> kernels_;
  std::mutex mutex_;  // of kernels_
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const GpuDevice& device, int64_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  Address address() const { return address_; }
  template <typename T>
  T* as(int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address_ + static_cast<Address>(offset_bytes)));
  }

 private:
  void swap(DeviceMemory& other) {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
  }
  const GpuDevice* device_ = nullptr;
  Address address_ = 0;
};

// Memory of the host that the GPU copies from and to directly.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const GpuDevice& device, int64_t bytes);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void swap(PinnedMemory& other) {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
  }
  const GpuDevice* device_ = nullptr;
  void* memory_ = nullptr;
};

class StreamHandle {
 public:
  explicit StreamHandle(const GpuDevice& device);
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;
  Stream* get() const { return stream_; }
  void wait() const;

 private:
  const GpuDevice& device_;
  Stream* stream_ = nullptr;
};

class EventHandle {
 public:
  explicit EventHandle(const GpuDevice& device);
  ~EventHandle();
  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;
  void record(const StreamHandle& stream) const;
  void wait() const;
  double milliseconds_since(const EventHandle& start) const;

 private:
  const GpuDevice& device_;
  Event* event_ = nullptr;
};

}  // namespace trawl::cuda
