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

class StreamHandle;

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
  // Both only start: the stream does it after what it was given before. `what` names the data in an error.
  void clear(Address at, int64_t bytes, const StreamHandle& stream) const;  // bytes: a multiple of 4
  void upload(const char* what, Address to, const void* from, int64_t bytes, const StreamHandle& stream) const;
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

// Something that the driver has made and that its function kRelease takes back.
template <typename T, Result (*Driver::*kRelease)(T)>
class Made {
 public:
  Made() = default;
  Made(const Driver& driver, T value) : driver_(&driver), value_(value) {}
  ~Made() {
    if (value_ != T{}) (driver_->*kRelease)(value_);
  }
  Made(Made&& other) noexcept { *this = std::move(other); }
  Made& operator=(Made&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(value_, other.value_);
    return *this;
  }
  T get() const { return value_; }

 private:
  const Driver* driver_ = nullptr;
  T value_{};
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const GpuDevice& device, int64_t bytes);
  Address address() const { return memory_.get(); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address()));
  }

 private:
  Made<Address, &Driver::release> memory_;
};

// Memory of the host that the GPU copies from and to directly.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const GpuDevice& device, int64_t bytes);
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  Made<void*, &Driver::release_host> memory_;
};

class StreamHandle {
 public:
  explicit StreamHandle(const GpuDevice& device);
  Stream* get() const { return stream_.get(); }
  void wait() const;

 private:
  const GpuDevice& device_;
  Made<Stream*, &Driver::stream_destroy> stream_;
};

class EventHandle {
 public:
  explicit EventHandle(const GpuDevice& device);
  void record(const StreamHandle& stream) const;
  void wait() const;
  double milliseconds_since(const EventHandle& start) const;

 private:
  const GpuDevice& device_;
  Made<Event*, &Driver::event_destroy> event_;
};

}  // namespace trawl::cuda
