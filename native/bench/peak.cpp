// Measures the peak rates of this processor, which limit the figures of bench.cpp, and prints one JSON object per line. Needs
// x86-64 with AVX-512 VNNI.
//
// Twelve independent accumulators, so that only the multipliers limit the rate. dots768_per_s: dot products of 768 dimensions
// at that rate; gflop_per_s: multiplications and additions, in 10^9 a second. Reads are timed over 4 GiB of huge pages, one cache
// line at a time.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/x86_features.hpp"

namespace {

template <typename Work>
double seconds(int threads, Work work) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work, i);
  for (std::thread& thread : running) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#if defined(__x86_64__)
#define TWELVE(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)
#define CLEAR(i) "vpxord %%zmm" #i ",%%zmm" #i ",%%zmm" #i "\n"
#define BYTES(i) "vpdpbusd %%zmm30,%%zmm31,%%zmm" #i "\n"
#define BYTES_FROM_MEMORY(i) "vpdpbusd (%1)%{1to16%},%%zmm31,%%zmm" #i "\n"
#define HALVES(i) "vdpbf16ps %%zmm30,%%zmm31,%%zmm" #i "\n"
#define FLOATS(i) "vfmadd231ps %%zmm30,%%zmm31,%%zmm" #i "\n"
#define LOOP(name, before, body)                                                                                                        \
  __attribute__((target("avx512f"))) void name(int64_t rounds, const char* memory) {                                                    \
    asm volatile(TWELVE(CLEAR) CLEAR(30) CLEAR(31) "1:\n" before body "dec %0\n jnz 1b\n"                                               \
                 : "+r"(rounds)                                                                                                         \
                 : "r"(memory)                                                                                                          \
                 : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm30", \
                   "xmm31");                                                                                                            \
  }
LOOP(bytes, "", TWELVE(BYTES))
LOOP(bytes_from_memory, "vmovdqa64 64(%1),%%zmm31\n", TWELVE(BYTES_FROM_MEMORY))
LOOP(floats, "", TWELVE(FLOATS))
LOOP(halves, "", TWELVE(HALVES))

void multiply(const char* name, void (*loop)(int64_t, const char*), int products, int threads) {
  constexpr int64_t kRounds = 20000000;
  alignas(64) static char memory[128] = {};
  double taken = seconds(threads, [&](int) { loop(kRounds, memory); });
  for (int repeat = 0; repeat < 2; ++repeat) {
    taken = std::min(taken, seconds(threads, [&](int) { loop(kRounds, memory); }));
  }
  const double instructions = 12.0 * kRounds * threads / taken;
  std::printf("{\"case\":\"%s\",\"threads\":%d,\"instructions_per_s\":%.3g,\"gflop_per_s\":%.4g,\"dots768_per_s\":%.3g}\n", name, threads,
              instructions, instructions * products * 2 / 1e9, instructions * products / 768);
}
#endif

void read_memory(int threads) {
  constexpr size_t kBytes = size_t{4} << 30;
  static char* const memory = [] {
    void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(mapping, kBytes, MADV_HUGEPAGE);
    std::memset(mapping, 1, kBytes);
    return static_cast<char*>(mapping);
  }();
  volatile int64_t sink = 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double taken = seconds(threads, [&](int part) {
      int64_t sum = 0;
      for (const char* at = memory + kBytes / threads * part; at < memory + kBytes / threads * (part + 1); at += 64) {
        sum += *reinterpret_cast<const int64_t*>(at);
      }
      sink = sum;
    });
    best = std::max(best, kBytes / taken / 1e9);
  }
  std::printf("{\"case\":\"read\",\"threads\":%d,\"gb_per_s\":%.1f}\n", threads, best);
}

}  // namespace

int main() {
  const int all = std::max(1u, std::thread::hardware_concurrency());
  for (int threads = 1; threads <= all; threads += std::max(1, all - 1)) {
#if defined(__x86_64__)
    const trawl::X86 cpu;
    if (trawl::missing_vnni(cpu).empty()) {
      multiply("int8 products, vpdpbusd", bytes, 64, threads);
      multiply("int8 products, vpdpbusd with one operand in the cache", bytes_from_memory, 64, threads);
      multiply("float32 products, vfmadd231ps", floats, 16, threads);
    }
    if (trawl::missing_avx512_bf16(cpu).empty()) multiply("bfloat16 products, vdpbf16ps", halves, 32, threads);
#endif
    read_memory(threads);
  }
}
