// The peak rates of this machine, which limit every search: reading memory, and multiplying.
#pragma once
#include <atomic>
#include <cstdint>

#include "trawl/thread_pool.hpp"

namespace trawl {

struct Peaks {
  double read_bytes_per_s;        // all threads of the pool read memory that is in no cache
  double int8_products_per_s;     // the multiplications of scan_avx512_vnni.cpp, else of scan_avx2.cpp, in registers; else 0
  double float32_products_per_s;  // fused multiply-adds in registers; 0 without AVX-512 or AVX2 with FMA
  const char* int8_isa;           // whose multiplications int8_products_per_s are, or "". Tiles of AMX are not measured
};

// Takes about half a second, and `bytes` of memory while it runs. Each rate is the best of several passes, because other work
// on the machine only makes a pass slower. `bytes` should be several times the last cache.
// Throws kBadArgument if `bytes` is below 1 MiB, std::bad_alloc without the memory, and kCancelled once `cancel` is true.
Peaks measure_peaks(ThreadPool& pool, int64_t bytes, const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl
