#include "gpu/gpu_device.hpp"
#include "trawl/error.hpp"
#include "trawl/gpu_codes.hpp"

namespace trawl {

using namespace cuda;

namespace {

// The driver tells the free memory only in a context, which takes a moment and some of that memory.
GpuFacts facts_of(const Driver& driver, int ordinal) {
  Device device = 0;
  driver.check(driver.device_get(&device, ordinal), "be opened");
  char text[256] = {};
  driver.check(driver.device_name(text, sizeof text - 1, device), "tell its name");
  GpuFacts facts;
  facts.name = text;
  facts.problem = capability_problem(driver, device);
  Context* context = nullptr;
  driver.check(driver.primary_context_retain(&context, device), "make a context");
  size_t free = 0, total = 0;
  Result result = driver.context_set(context);
  if (result == kSuccess) result = driver.memory_info(&free, &total);
  driver.context_set(nullptr);
  driver.primary_context_release(device);
  driver.check(result, "tell its free memory");
  facts.free_bytes = static_cast<int64_t>(free);
  facts.total_bytes = static_cast<int64_t>(total);
  return facts;
}

}  // namespace

GpuList list_gpus(const std::string& library) {
  const Driver& driver = Driver::get(library);
  GpuList list;
  list.driver_version = start_driver(driver);
  int count = 0;
  driver.check(driver.device_count(&count), "be counted");
  for (int i = 0; i < count; ++i) {
    try {
      list.gpus.push_back(facts_of(driver, i));
    } catch (const Error& error) {
      GpuFacts facts;
      facts.name = "GPU " + std::to_string(i);
      facts.problem = error.what();
      list.gpus.push_back(facts);
    }
  }
  return list;
}

}  // namespace trawl
