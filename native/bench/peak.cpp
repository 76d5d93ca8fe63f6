// Prints the peak rates of this processor, which limit the figures of bench.cpp, one JSON object per number of threads.
// dots768_per_s: dot products of 768 dimensions at the rate of int8 products.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "trawl/peaks.hpp"

int main() {
  const int all = std::max(1u, std::thread::hardware_concurrency());
  for (int threads = 1; threads <= all; threads += std::max(1, all - 1)) {
    trawl::ThreadPool pool(threads);
    const trawl::Peaks peaks = trawl::measure_peaks(pool, int64_t{4} << 30);
    std::printf(
        "{\"threads\":%d,\"read_gb_per_s\":%.1f,\"int8_products_per_s\":%.3g,\"float32_products_per_s\":%.3g,\"dots768_per_s\":%.3g}\n",
        threads, peaks.read_bytes_per_s / 1e9, peaks.int8_products_per_s, peaks.float32_products_per_s,
        peaks.int8_products_per_s / 768);
  }
}
