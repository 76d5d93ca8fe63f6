#include "gpu/cuda_driver.hpp"

#include <map>
#include <mutex>

#include "trawl/error.hpp"

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace trawl::cuda {

namespace {

[[noreturn]] void unavailable(const std::string& reason) { throw Error(ErrorCode::kDeviceUnavailable, reason); }

void* open_library(const std::string& path) {
#if defined(__linux__)
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const reason = ::dlerror();
  unavailable(std::string("NVIDIA's driver cannot be loaded: ") + (reason != nullptr ? reason : path) +
              ". Install the driver, or search on the CPU");
#else
  (void)path;
  unavailable("searches on an NVIDIA GPU need Linux; search on the CPU");
#endif
}

template <typename F>
void find(void* library, const std::string& path, const char* name, F& function) {
#if defined(__linux__)
  function = reinterpret_cast<F>(::dlsym(library, name));
#endif
  (void)library;
  if (function == nullptr) {
    unavailable(path + " has no function " + name + "; it needs NVIDIA's driver 450 or newer, or search on the CPU");
  }
}

}  // namespace

Driver::Driver(const std::string& path) {
  void* const library = open_library(path);
  find(library, path, "cuInit", init);
  find(library, path, "cuDriverGetVersion", driver_version);
  find(library, path, "cuDeviceGetCount", device_count);
  find(library, path, "cuDeviceGet", device_get);
  find(library, path, "cuDeviceGetName", device_name);
  find(library, path, "cuDeviceGetAttribute", device_attribute);
  find(library, path, "cuDevicePrimaryCtxRetain", primary_context_retain);
  find(library, path, "cuDevicePrimaryCtxRelease_v2", primary_context_release);
  find(library, path, "cuCtxSetCurrent", context_set);
  find(library, path, "cuModuleLoadDataEx", module_load);
  find(library, path, "cuModuleGetFunction", module_function);
  find(library, path, "cuFuncSetAttribute", function_set);
  find(library, path, "cuMemGetInfo_v2", memory_info);
  find(library, path, "cuMemAlloc_v2", allocate);
  find(library, path, "cuMemFree_v2", release);
  find(library, path, "cuMemAllocHost_v2", allocate_host);
  find(library, path, "cuMemFreeHost", release_host);
  find(library, path, "cuMemcpyHtoDAsync_v2", copy_to_device);
  find(library, path, "cuMemcpyDtoHAsync_v2", copy_to_host);
  find(library, path, "cuMemsetD32Async", set_words);
  find(library, path, "cuLaunchKernel", launch);
  find(library, path, "cuStreamCreate", stream_create);
  find(library, path, "cuStreamDestroy_v2", stream_destroy);
  find(library, path, "cuStreamSynchronize", stream_wait);
  find(library, path, "cuEventCreate", event_create);
  find(library, path, "cuEventDestroy_v2", event_destroy);
  find(library, path, "cuEventRecord", event_record);
  find(library, path, "cuEventSynchronize", event_wait);
  find(library, path, "cuEventElapsedTime", event_elapsed);
  find(library, path, "cuGetErrorName", error_name);
}

const Driver& Driver::get(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Driver>>& drivers = *new std::map<std::string, std::unique_ptr<const Driver>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<const Driver>& driver = drivers[path];
  if (!driver) driver.reset(new Driver(path.empty() ? "libcuda.so.1" : path));
  return *driver;
}

void Driver::check(Result result, const std::string& action) const {
  if (result == kSuccess) return;
  const char* name = nullptr;
  if (error_name(result, &name) != kSuccess || name == nullptr) name = "an unknown error";
  unavailable("the GPU cannot " + action + ": " + name + " (" + std::to_string(result) + ")");
}

}  // namespace trawl::cuda
