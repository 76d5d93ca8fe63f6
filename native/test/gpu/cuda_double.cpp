// A test double of NVIDIA's driver: a shared library with the functions that the engine calls. It runs the kernels themselves:
// scan.cu is compiled here for the CPU, and each thread of a block is a fibre. Fibres of a warp wait for each other where a GPU's
// threads exchange values, and a copy without waiting happens only when it is waited for.
//   TRAWL_CUDA_DOUBLE_BYTES     memory of the GPU (2^30)
//   TRAWL_CUDA_DOUBLE_LAUNCHES  launches until the GPU fails, counted while the variable is set. The next call that reaches it has the
//                               error, as all later ones, until the variable is unset
//   TRAWL_CUDA_DOUBLE_LATE_MS   time from a call of a launch until it looks at its function, while other threads make calls
#include <ucontext.h>
#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define TRAWL_DEVICE static inline
#define TRAWL_KERNEL(blocks) static void

struct int4 {
  int x, y, z, w;
};

#include "gpu/cuda_kernels.hpp"

namespace trawl::cuda {

namespace {

constexpr int kWarp = 32, kWarps = kThreads / kWarp;
constexpr size_t kStackBytes = 64 * 1024;

struct Copy {
  uint8_t* to;
  const void* from;
};
struct Fibre {
  ucontext_t start;
  jmp_buf at;
  bool started = false, ended = false;
  std::vector<std::vector<Copy>> copies;  // committed groups, and the open one at the end
  int turn = 0;                           // of the exchanges of its warp
  std::vector<char> stack = std::vector<char>(kStackBytes);
};
struct Exchange {
  int arrived = 0;
  uint64_t round = 0;
};

Fibre fibres[kThreads];
Exchange warps[kWarps], block;
uint64_t slots[2][kThreads][6];  // what threads exchange, in turns, so that nobody overwrites what another has yet to read
int current = 0;
uint32_t the_block = 0, all_blocks = 0;
std::vector<uint64_t> shared_words;
jmp_buf scheduler;
void (*the_kernel)(trawl::cuda::ScanArguments);
ScanArguments the_arguments;

void yield() {
  if (_setjmp(fibres[current].at) == 0) _longjmp(scheduler, 1);
}
void wait_for_all(Exchange& exchange, int all) {
  const uint64_t round = exchange.round;
  if (++exchange.arrived == all) {
    exchange.arrived = 0;
    ++exchange.round;
    return;
  }
  while (exchange.round == round) yield();
}
void run_fibre() {
  the_kernel(the_arguments);
  fibres[current].ended = true;
  _longjmp(scheduler, 1);
}

void run_block() {
  for (Fibre& fibre : fibres) {
    fibre.started = fibre.ended = false;
    fibre.turn = 0;
    fibre.copies.assign(1, {});
  }
  for (Exchange& warp : warps) warp = {};
  block = {};
  volatile int left = kThreads;
  while (left > 0) {
    for (volatile int i = 0; i < kThreads; i = i + 1) {
      Fibre& fibre = fibres[i];
      if (fibre.ended) continue;
      current = i;
      if (_setjmp(scheduler) == 0) {
        if (fibre.started) _longjmp(fibre.at, 1);
        fibre.started = true;
        getcontext(&fibre.start);
        fibre.start.uc_stack.ss_sp = fibre.stack.data();
        fibre.start.uc_stack.ss_size = fibre.stack.size();
        fibre.start.uc_link = nullptr;
        makecontext(&fibre.start, run_fibre, 0);
        setcontext(&fibre.start);
      }
      if (fibres[i].ended) left = left - 1;
    }
  }
}

// Gives `count` words to the other threads of the warp, waits for theirs, and returns all of them.
const uint64_t (*exchange(const uint64_t* words, int count))[6] {
  const int turn = fibres[current].turn ^= 1;
  for (int i = 0; i < count; ++i) slots[turn][current][i] = words[i];
  const int warp = current / kWarp;
  wait_for_all(warps[warp], kWarp);
  return slots[turn] + warp * kWarp;
}

int dot4(uint32_t a, uint32_t b) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) sum += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return sum;
}

}  // namespace

TRAWL_DEVICE uint32_t thread_index() { return static_cast<uint32_t>(current); }
TRAWL_DEVICE uint32_t block_index() { return the_block; }
TRAWL_DEVICE uint32_t block_count() { return all_blocks; }
TRAWL_DEVICE uint8_t* shared_memory() { return reinterpret_cast<uint8_t*>(shared_words.data()); }
TRAWL_DEVICE void sync_threads() { wait_for_all(block, kThreads); }
template <typename T>
TRAWL_DEVICE T shuffle_xor(T value, int mask) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const uint64_t other = exchange(&word, 1)[current % kWarp ^ mask][0];
  std::memcpy(&value, &other, sizeof value);
  return value;
}
TRAWL_DEVICE int dot_of_four(int a, int b, int sum) { return sum + dot4(static_cast<uint32_t>(a), static_cast<uint32_t>(b)); }
TRAWL_DEVICE int4 load_once(const int4* at) { return *at; }
TRAWL_DEVICE uint32_t add_to_count(uint32_t* count) { return (*count)++; }
TRAWL_DEVICE uint32_t read_count(const uint32_t* count) { return *count; }
TRAWL_DEVICE void raise(unsigned long long* maximum, unsigned long long key) { *maximum = key > *maximum ? key : *maximum; }
TRAWL_DEVICE uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
TRAWL_DEVICE void copy_async(uint8_t* shared, const void* global) { fibres[current].copies.back().push_back({shared, global}); }
TRAWL_DEVICE void commit_copies() { fibres[current].copies.emplace_back(); }
template <int left>
TRAWL_DEVICE void wait_copies() {
  auto& copies = fibres[current].copies;
  while (copies.size() > left + 1) {
    for (const Copy& copy : copies.front()) std::memcpy(copy.to, copy.from, 16);
    copies.erase(copies.begin());
  }
}
TRAWL_DEVICE void load_matrices(uint32_t (&values)[4], const uint8_t* shared) {
  const auto word = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(shared));
  const auto* addresses = exchange(&word, 1);
  const int lane = current % kWarp;
  for (int i = 0; i < 4; ++i) {
    const auto* row = reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(addresses[i * 8 + lane / 4][0]));
    std::memcpy(&values[i], row + lane % 4 * 4, 4);
  }
}
TRAWL_DEVICE void multiply_add(int (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const uint64_t words[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const auto* all = exchange(words, 6);
  const int lane = current % kWarp, row = lane / 4;
  for (int e = 0; e < 4; ++e) {
    const int high = e / 2, column = lane % 4 * 2 + e % 2;
    for (int t = 0; t < 4; ++t) {
      const uint64_t* of_row = all[row * 4 + t];
      const uint64_t* of_column = all[column * 4 + t];
      sums[e] += dot4(static_cast<uint32_t>(of_row[high]), static_cast<uint32_t>(of_column[4]));
      sums[e] += dot4(static_cast<uint32_t>(of_row[2 + high]), static_cast<uint32_t>(of_column[5]));
    }
  }
}

}  // namespace trawl::cuda

#include "gpu/scan.cu"

namespace {

using Kernel = void (*)(ScanArguments);
const std::map<std::string, Kernel> kernels = {
    {trawl::cuda::kHitsFew1, trawl_hits_few_1},    {trawl::cuda::kHitsFew4, trawl_hits_few_4},
    {trawl::cuda::kHitsFew8, trawl_hits_few_8},    {trawl::cuda::kHitsNarrow, trawl_hits_narrow},
    {trawl::cuda::kHitsWide, trawl_hits_wide},     {trawl::cuda::kSampleNarrow, trawl_sample_narrow},
    {trawl::cuda::kSampleWide, trawl_sample_wide}, {trawl::cuda::kDots, trawl_dots},
};

constexpr int kInvalidValue = 1, kLaunchFailed = 719;
constexpr int kSharedBytes = 48 * 1024, kSharedBytesOptIn = 96 * 1024;  // of a launch, without and with the attribute of its function

std::mutex mutex;  // of all that follows, and of the running kernel
std::map<void*, int> shared_limits;
long launches = 0;
bool has_failed() {
  const char* text = std::getenv("TRAWL_CUDA_DOUBLE_LAUNCHES");
  if (text == nullptr) launches = 0;
  return text != nullptr && launches > std::atol(text);
}
// The result of a call that reaches the GPU.
int reached() {
  const std::lock_guard<std::mutex> lock(mutex);
  return has_failed() ? kLaunchFailed : 0;
}

std::map<unsigned long long, size_t> allocated;
size_t used = 0;
size_t total() {
  const char* text = std::getenv("TRAWL_CUDA_DOUBLE_BYTES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : size_t{1} << 30;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int cuInit(unsigned) { return 0; }
__attribute__((visibility("default"))) int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
__attribute__((visibility("default"))) int cuDeviceGetCount(int* count) { return *count = 1, 0; }
__attribute__((visibility("default"))) int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
__attribute__((visibility("default"))) int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "a test double");
  return 0;
}
__attribute__((visibility("default"))) int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 2 : attribute == 75 ? 8 : attribute == 97 ? kSharedBytesOptIn : 0;
  return 0;
}
__attribute__((visibility("default"))) int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &used, 0; }
__attribute__((visibility("default"))) int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
__attribute__((visibility("default"))) int cuCtxSetCurrent(void*) { return 0; }
__attribute__((visibility("default"))) int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return *module = &used, 0;
}
__attribute__((visibility("default"))) int cuModuleGetFunction(void** function, void*, const char* name) {
  const auto found = kernels.find(name);
  if (found == kernels.end()) return 500;
  *function = reinterpret_cast<void*>(found->second);
  return 0;
}
__attribute__((visibility("default"))) int cuFuncSetAttribute(void* function, int attribute, int value) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (attribute != 8 || value > kSharedBytesOptIn) return kInvalidValue;
  shared_limits[function] = value;
  return 0;
}
__attribute__((visibility("default"))) int cuMemGetInfo_v2(size_t* free, size_t* all) {
  const std::lock_guard<std::mutex> lock(mutex);
  *all = total();
  *free = *all > used ? *all - used : 0;
  return 0;
}
__attribute__((visibility("default"))) int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (used + bytes > total()) return 2;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return 2;
  std::memset(memory, 0xA5, bytes);
  *address = reinterpret_cast<uintptr_t>(memory);
  allocated[*address] = bytes;
  used += bytes;
  return 0;
}
__attribute__((visibility("default"))) int cuMemFree_v2(unsigned long long address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = allocated.find(address);
  if (found == allocated.end()) return 1;
  used -= found->second;
  allocated.erase(found);
  std::free(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  return 0;
}
__attribute__((visibility("default"))) int cuMemAllocHost_v2(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory != nullptr ? 0 : 2;
}
__attribute__((visibility("default"))) int cuMemFreeHost(void* memory) { return std::free(memory), 0; }
__attribute__((visibility("default"))) int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, bytes);
  return reached();
}
__attribute__((visibility("default"))) int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void*) {
  std::memcpy(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(from)), bytes);
  return reached();
}
__attribute__((visibility("default"))) int cuMemsetD32Async(unsigned long long at, unsigned value, size_t count, void*) {
  auto* words = reinterpret_cast<unsigned*>(static_cast<uintptr_t>(at));
  for (size_t i = 0; i < count; ++i) words[i] = value;
  return reached();
}
__attribute__((visibility("default"))) int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                                                          unsigned, unsigned shared_bytes, void*, void** arguments, void**) {
  using namespace trawl::cuda;
  if (const char* text = std::getenv("TRAWL_CUDA_DOUBLE_LATE_MS")) std::this_thread::sleep_for(std::chrono::milliseconds(std::atol(text)));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto limit = shared_limits.find(function);
  if (threads != kThreads || blocks == 0) return kInvalidValue;
  if (static_cast<int>(shared_bytes) > (limit == shared_limits.end() ? kSharedBytes : std::max(limit->second, kSharedBytes)))
    return kInvalidValue;
  if (has_failed()) return kLaunchFailed;
  ++launches;
  if (has_failed()) return 0;
  the_kernel = reinterpret_cast<Kernel>(function);
  the_arguments = *static_cast<const ScanArguments*>(arguments[0]);
  shared_words.assign((shared_bytes + 7) / 8 + 2, 0x5A5A5A5A5A5A5A5Aull);
  all_blocks = blocks;
  for (the_block = 0; the_block < blocks; ++the_block) run_block();
  return 0;
}
__attribute__((visibility("default"))) int cuStreamCreate(void** stream, unsigned) { return *stream = &used, 0; }
__attribute__((visibility("default"))) int cuStreamDestroy_v2(void*) { return 0; }
__attribute__((visibility("default"))) int cuStreamSynchronize(void*) { return reached(); }
__attribute__((visibility("default"))) int cuEventCreate(void** event, unsigned) { return *event = &used, 0; }
__attribute__((visibility("default"))) int cuEventDestroy_v2(void*) { return 0; }
__attribute__((visibility("default"))) int cuEventRecord(void*, void*) { return reached(); }
__attribute__((visibility("default"))) int cuEventSynchronize(void*) { return reached(); }
__attribute__((visibility("default"))) int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 1, 0; }
__attribute__((visibility("default"))) int cuGetErrorName(int result, const char** name) {
  *name = result == 2               ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 500           ? "CUDA_ERROR_NOT_FOUND"
          : result == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                    : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

}  // extern "C"
