#include "gpu/gpu_device.hpp"

#include <utility>

#include "../generated/scan_ptx.hpp"
#include "gpu/cuda_kernels.hpp"
#include "trawl/error.hpp"

namespace trawl::cuda {

std::string start_driver(const Driver& driver) {
  driver.check(driver.init(0), "start its driver");
  int number = 0;
  driver.check(driver.driver_version(&number), "tell the version of its driver");
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string capability_problem(const Driver& driver, Device device) {
  int major = 0, minor = 0;
  driver.check(driver.device_attribute(&major, kMajor, device), "tell its compute capability");
  driver.check(driver.device_attribute(&minor, kMinor, device), "tell its compute capability");
  if (major >= 8) return "";
  return "it has compute capability " + std::to_string(major) + "." + std::to_string(minor) + ", but searches need 8.0 or newer (Ampere)";
}

GpuDevice::GpuDevice(const std::string& library, int64_t ordinal) : driver(Driver::get(library)), version(start_driver(driver)) {
  int count = 0;
  driver.check(driver.device_count(&count), "be counted");
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorCode::kDeviceUnavailable, "there is no GPU " + std::to_string(ordinal) + ": the driver lists " +
                                                   std::to_string(count) + ", counted from 0. Name one of them, or search on the CPU");
  }
  driver.check(driver.device_get(&device_, static_cast<int>(ordinal)), "be opened");
  char text[256] = {};
  driver.check(driver.device_name(text, sizeof text - 1, device_), "tell its name");
  name = text;
  const std::string problem = capability_problem(driver, device_);
  if (!problem.empty()) throw Error(ErrorCode::kDeviceUnavailable, name + " cannot be used: " + problem + "; search on the CPU");
  driver.check(driver.device_attribute(&multiprocessors, kMultiprocessors, device_), "tell its size");
  driver.check(driver.device_attribute(&shared_bytes, kSharedBytesOptIn, device_), "tell its shared memory");
  driver.check(driver.primary_context_retain(&context_, device_), "make a context");
  try {
    use();
    load_kernels();
  } catch (...) {
    driver.primary_context_release(device_);
    throw;
  }
}

GpuDevice& GpuDevice::open(const std::string& library, int64_t ordinal) {
  static std::mutex& mutex = *new std::mutex;
  static auto& devices = *new std::map<std::pair<std::string, int64_t>, GpuDevice*>;
  const std::lock_guard<std::mutex> lock(mutex);
  GpuDevice*& device = devices[{library, ordinal}];
  if (device == nullptr) device = new GpuDevice(library, ordinal);
  return *device;
}

// The driver compiles the kernels for its GPU, and keeps the result for later processes.
void GpuDevice::load_kernels() {
  char log[4096] = {};
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const Result result = driver.module_load(&module_, scan_ptx(), 2, options, values);
  driver.check(result, std::string("compile the search (driver for CUDA ") + version + "; 11.0 or newer is needed) " + log);
}

Function* GpuDevice::function(const char* kernel, int64_t shared_bytes_wanted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kernel& found = kernels_[kernel];
  if (found.function == nullptr) {
    driver.check(driver.module_function(&found.function, module_, kernel), std::string("find the kernel ") + kernel);
  }
  if (shared_bytes_wanted > found.shared_bytes) {
    driver.check(driver.function_set(found.function, kMaxDynamicSharedBytes, static_cast<int>(shared_bytes_wanted)),
                 "reserve shared memory");
    found.shared_bytes = shared_bytes_wanted;
  }
  return found.function;
}

void GpuDevice::launch(const char* kernel, int64_t blocks, int64_t shared_bytes_wanted, Stream* stream, const void* arguments) {
  void* list[] = {const_cast<void*>(arguments)};
  driver.check(driver.launch(function(kernel, shared_bytes_wanted), static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1,
                             static_cast<unsigned>(shared_bytes_wanted), stream, list, nullptr),
               std::string("start ") + kernel);
}

int64_t GpuDevice::free_bytes() const {
  size_t free = 0, total = 0;
  driver.check(driver.memory_info(&free, &total), "tell its free memory");
  return static_cast<int64_t>(free);
}

void GpuDevice::clear(Address at, int64_t bytes, const StreamHandle& stream) const {
  driver.check(driver.set_words(at, 0, static_cast<size_t>(bytes / 4), stream.get()), "clear memory");
}

void GpuDevice::upload(const char* what, Address to, const void* from, int64_t bytes, const StreamHandle& stream) const {
  driver.check(driver.copy_to_device(to, from, static_cast<size_t>(bytes), stream.get()), std::string("take ") + what);
}

DeviceMemory::DeviceMemory(const GpuDevice& device, int64_t bytes) {
  Address address = 0;
  const Result result = device.driver.allocate(&address, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (result == kOutOfMemory) {
    throw Error(ErrorCode::kDeviceUnavailable, device.name + " lacks " + std::to_string(bytes) + " bytes in one piece, " +
                                                   std::to_string(device.free_bytes()) + " bytes are free; search on the CPU");
  }
  device.driver.check(result, "allocate memory");
  memory_ = {device.driver, address};
}

PinnedMemory::PinnedMemory(const GpuDevice& device, int64_t bytes) {
  void* memory = nullptr;
  device.driver.check(device.driver.allocate_host(&memory, static_cast<size_t>(bytes > 0 ? bytes : 1)),
                      "reserve " + std::to_string(bytes) + " bytes of the host's memory");
  memory_ = {device.driver, memory};
}

StreamHandle::StreamHandle(const GpuDevice& device) : device_(device) {
  Stream* stream = nullptr;
  device.driver.check(device.driver.stream_create(&stream, kStreamNonBlocking), "make a stream");
  stream_ = {device.driver, stream};
}
void StreamHandle::wait() const { device_.driver.check(device_.driver.stream_wait(get()), "finish a search"); }

EventHandle::EventHandle(const GpuDevice& device) : device_(device) {
  Event* event = nullptr;
  device.driver.check(device.driver.event_create(&event, 0), "make an event");
  event_ = {device.driver, event};
}
void EventHandle::record(const StreamHandle& stream) const {
  device_.driver.check(device_.driver.event_record(event_.get(), stream.get()), "record an event");
}
void EventHandle::wait() const { device_.driver.check(device_.driver.event_wait(event_.get()), "finish a search"); }
double EventHandle::milliseconds_since(const EventHandle& start) const {
  float milliseconds = 0;
  device_.driver.check(device_.driver.event_elapsed(&milliseconds, start.event_.get(), event_.get()), "tell a time");
  return milliseconds;
}

}  // namespace trawl::cuda
