#include "trawl/peaks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "base/cancel.hpp"
#include "base/os.hpp"
#include "base/x86_features.hpp"

namespace trawl {

namespace {

constexpr int kPasses = 5;
constexpr int64_t kRounds = 4000000;  // of twelve multiplications: about 15 ms
constexpr int64_t kLine = 64;

// Best of kPasses: `work(part)` runs once on each of the pool's threads.
template <typename Work>
double fastest_seconds(ThreadPool& pool, const std::atomic<bool>* cancel, Work work) {
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    check_cancelled(cancel);
    const auto start = std::chrono::steady_clock::now();
    pool.run(pool.threads(), work);
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = pass == 0 ? taken : std::min(best, taken);
  }
  return best;
}

#if defined(__x86_64__)
// Twelve independent accumulators, so that only the multipliers limit the rate.
#define TWELVE(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)
#define CLOBBERED \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define LOOP(name, features, clear, operation)                                                                                 \
  __attribute__((target(features))) void name() {                                                                              \
    int64_t rounds = kRounds;                                                                                                  \
    asm volatile(TWELVE(clear) clear(12) clear(13) clear(14) clear(15) "1:\n" TWELVE(operation) "dec %0\n jnz 1b\n"          \
                 "vzeroupper\n"                                                                          \
                 : "+r"(rounds)::"cc", CLOBBERED); \
  }
#define CLEAR512(i) "vpxord %%zmm" #i ",%%zmm" #i ",%%zmm" #i "\n"
#define CLEAR256(i) "vpxor %%ymm" #i ",%%ymm" #i ",%%ymm" #i "\n"
#define INT8_512(i) "vpdpbusd %%zmm12,%%zmm13,%%zmm" #i "\n"
// 64 products in five instructions, as scan_groups in scan_avx2.cpp multiplies.
#define INT8_256(i)                                                           \
  "vpmaddubsw %%ymm12,%%ymm13,%%ymm14\n vpmaddubsw %%ymm13,%%ymm12,%%ymm15\n" \
  "vpaddw %%ymm15,%%ymm14,%%ymm14\n vpmaddwd %%ymm12,%%ymm14,%%ymm14\n"       \
  "vpaddd %%ymm14,%%ymm" #i ",%%ymm" #i "\n"
#define FLOAT_512(i) "vfmadd231ps %%zmm12,%%zmm13,%%zmm" #i "\n"
#define FLOAT_256(i) "vfmadd231ps %%ymm12,%%ymm13,%%ymm" #i "\n"
LOOP(multiply_int8_512, "avx512f", CLEAR512, INT8_512)
LOOP(multiply_int8_256, "avx2", CLEAR256, INT8_256)
LOOP(multiply_float_512, "avx512f", CLEAR512, FLOAT_512)
LOOP(multiply_float_256, "avx2,fma", CLEAR256, FLOAT_256)

double products_per_s(ThreadPool& pool, const std::atomic<bool>* cancel, void (*loop)(), int products) {
  const auto threads = static_cast<double>(pool.threads());
  const double taken = fastest_seconds(pool, cancel, [loop](int64_t) { loop(); });
  return 12.0 * kRounds * threads * products / taken;
}
#endif

double read_rate(ThreadPool& pool, int64_t bytes, const std::atomic<bool>* cancel) {
  void* const pages = os::allocate_pages(bytes);
  if (pages == nullptr) throw std::bad_alloc();
  const auto free_pages = [bytes](char* memory) { os::free_pages(memory, bytes); };
  const std::unique_ptr<char, decltype(free_pages)> memory(static_cast<char*>(pages), free_pages);
  const int64_t parts = pool.threads(), part_bytes = bytes / parts / kLine * kLine;
  // Each thread touches its own part first, so that on a machine with several memory nodes it lies near a reader.
  pool.run(parts, [&](int64_t part) { std::memset(memory.get() + part * part_bytes, 1, static_cast<size_t>(part_bytes)); });
  std::atomic<int64_t> sink{0};
  const double taken = fastest_seconds(pool, cancel, [&](int64_t part) {
    const char* const from = memory.get() + part * part_bytes;
    int64_t sum = 0;
    for (const char* at = from; at < from + part_bytes; at += kLine) {
      int64_t word;
      std::memcpy(&word, at, sizeof word);
      sum += word;
    }
    sink += sum;
  });
  return static_cast<double>(part_bytes * parts) / taken;
}

}  // namespace

Peaks measure_peaks(ThreadPool& pool, int64_t bytes, const std::atomic<bool>* cancel) {
  if (bytes < 1 << 20) {
    throw Error(ErrorCode::kBadArgument, "bytes is " + std::to_string(bytes) + ", expected at least 1048576");
  }
  Peaks peaks{read_rate(pool, bytes, cancel), 0, 0, ""};
#if defined(__x86_64__)
  const X86 cpu;
  if (missing_vnni(cpu).empty()) {
    peaks.int8_isa = "avx512-vnni";
    peaks.int8_products_per_s = products_per_s(pool, cancel, multiply_int8_512, 64);
  } else if (missing_avx2(cpu).empty()) {
    peaks.int8_isa = "avx2";
    peaks.int8_products_per_s = products_per_s(pool, cancel, multiply_int8_256, 64);
  }
  if (missing_avx512(cpu).empty()) {
    peaks.float32_products_per_s = products_per_s(pool, cancel, multiply_float_512, 16);
  } else if (missing_avx2(cpu).empty()) {
    peaks.float32_products_per_s = products_per_s(pool, cancel, multiply_float_256, 8);
  }
#endif
  return peaks;
}

}  // namespace trawl
