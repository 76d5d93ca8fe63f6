// NVIDIA's driver library, loaded when it is first needed: the engine neither links it nor needs CUDA to be compiled.
// Names, types and numbers are the same as in cuda.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace trawl::cuda {

using Result = int;
using Device = int;
using Address = unsigned long long;
struct Context;
struct Module;
struct Function;
struct Stream;
struct Event;

class Driver {
 public:
  // Loads the library once for the process. An empty path: the driver of this machine. Throws kDeviceUnavailable.
  static const Driver& get(const std::string& path);

  // Throws kDeviceUnavailable with the driver's name of the error unless `result` is success.
  void check(Result result, const std::string& action) const;

  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*device_count)(int* count);
  Result (*device_get)(Device* device, int ordinal);
  Result (*device_name)(char* name, int length, Device device);
  Result (*device_attribute)(int* value, int attribute, Device device);
  Result (*primary_context_retain)(Context** context, Device device);
  Result (*primary_context_release)(Device device);
  Result (*context_set)(Context* context);
  Result (*module_load)(Module** module, const void* image, unsigned count, int* options, void** values);
  Result (*module_function)(Function** function, Module* module, const char* name);
  Result (*function_set)(Function* function, int attribute, int value);
  Result (*memory_info)(size_t* free, size_t* total);
  Result (*allocate)(Address* address, size_t bytes);
  Result (*release)(Address address);
  Result (*allocate_host)(void** memory, size_t bytes);
  Result (*release_host)(void* memory);
  Result (*copy_to_device)(Address to, const void* from, size_t bytes, Stream* stream);
  Result (*copy_to_host)(void* to, Address from, size_t bytes, Stream* stream);
  Result (*set_words)(Address at, unsigned value, size_t count, Stream* stream);
  Result (*launch)(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, Stream* stream, void** arguments, void** extra);
  Result (*stream_create)(Stream** stream, unsigned flags);
  Result (*stream_destroy)(Stream* stream);
  Result (*stream_wait)(Stream* stream);
  Result (*event_create)(Event** event, unsigned flags);
  Result (*event_destroy)(Event* event);
  Result (*event_record)(Event* event, Stream* stream);
  Result (*event_wait)(Event* event);
  Result (*event_elapsed)(float* milliseconds, Event* start, Event* end);
  Result (*error_name)(Result result, const char** name);

 private:
  explicit Driver(const std::string& path);
};

constexpr Result kSuccess = 0, kOutOfMemory = 2;
// CUdevice_attribute, CUfunction_attribute, CUjit_option and flags of streams.
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kSharedBytesOptIn = 97;
constexpr int kMaxDynamicSharedBytes = 8;
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;
constexpr unsigned kStreamNonBlocking = 1;

}  // namespace trawl::cuda
