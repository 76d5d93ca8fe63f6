// Searches with and without a GPU over random indexes, compared bit for bit. The tests run them on the test double, and
// bench/cuda_bench.cpp on a real GPU.
#pragma once
#include "oracle.hpp"

namespace gpu_cases {

using namespace oracle;

inline void check_equal_answers(const trawl::SearchResult& gpu, const trawl::SearchResult& cpu, const std::string& name) {
  for (int64_t q = 0; q < cpu.queries; ++q) {
    if (gpu.counts[q] != cpu.counts[q]) {
      check::fail(__FILE__, __LINE__,
                  name + ": query " + std::to_string(q) + " has " + std::to_string(gpu.counts[q]) + " results on the GPU, " +
                      std::to_string(cpu.counts[q]) + " on the CPU");
    }
    for (int64_t i = q * cpu.k; i < q * cpu.k + cpu.counts[q]; ++i) {
      if (gpu.rows[i] != cpu.rows[i] || std::memcmp(&gpu.scores[i], &cpu.scores[i], 8) != 0) {
        check::fail(__FILE__, __LINE__,
                    name + ": query " + std::to_string(q) + " rank " + std::to_string(i - q * cpu.k) + ": row " +
                        std::to_string(gpu.rows[i]) + " on the GPU, " + std::to_string(cpu.rows[i]) + " on the CPU");
      }
    }
  }
}

constexpr float kFar = 0x1p25f;

inline Data make_data(int kind, int64_t n, int64_t d, uint32_t seed) {
  if (kind == 0) return gaussian(n, d, seed);
  Data data = encoder_like(n, d, seed);
  if (kind == 1) return data;
  std::mt19937 random(seed);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      float& value = data.row(i)[j];
      if (kind == 2) value = static_cast<float>(static_cast<int>(random() % 3) - 1);  // many ties
      if (kind == 3) value = static_cast<float>(j % 5);                               // all rows equal
      if (kind == 4) value = std::ldexp(value, static_cast<int>(i % 7) * 20 - 58);    // untestable rows
      if (kind == 6) value += kFar;                                                   // a mean far from zero
      if (kind == 5 && i % 3 == 0) value = 0;                                         // zero rows and queries
    }
  }
  return data;
}
constexpr int kKinds = 7;

struct Case {
  Metric metric;
  int kind;
  int64_t n, d, queries, k;
  int shards;
  trawl::GpuOptions options;
  double live = 1, passing = 1;
};

inline std::vector<uint64_t> bits_with_share(int64_t n, double share, std::mt19937& random) {
  std::vector<uint64_t> bits((n + 63) / 64, 0);
  for (int64_t i = 0; i < n; ++i) {
    if (random() % 1000000 < share * 1000000) bits[i / 64] |= uint64_t{1} << (i % 64);
  }
  return bits;
}

inline void compare(const Case& c, uint32_t seed, trawl::ThreadPool& pool, trawl::GpuWork* work = nullptr) {
  std::mt19937 random(seed);
  const Data data = make_data(c.kind, c.n, c.d, seed);
  Data queries = make_data(c.kind == 2 || c.kind == 3 ? 1 : c.kind, c.queries, c.d, seed + 1);
  if (c.n > 0) std::copy(data.row(c.n / 2), data.row(c.n / 2) + c.d, queries.row(0));  // one query equals a row
  BuildOptions build_options;
  if (c.kind == 6) {
    // A query parallel to such a mean is untestable.
    build_options.mean.assign(c.d, kFar);
    for (int64_t q = 1; q < c.queries; q += 2) std::fill(queries.row(q), queries.row(q) + c.d, 1.0f);
  }
  build_options.shards = c.shards;
  build_options.rows_per_block = 16 * (1 + static_cast<int64_t>(random() % 12));
  if (c.live < 1) build_options.live = bits_with_share(c.n, c.live, random);
  const auto built = build(c.metric, data, pool, build_options);
  const std::vector<uint64_t> filter = bits_with_share(c.n, c.passing, random);
  trawl::SearchOptions options;
  options.k = c.k;
  options.batch_queries = 1024;
  if (c.passing < 1) options.filter_bits = filter.data();
  const trawl::SearchResult cpu = trawl::search(*built->index, queries.values.data(), c.queries, options, pool);
  const trawl::GpuCodes codes(*built->index, c.options, pool);
  options.gpu = &codes;
  const trawl::SearchResult gpu = trawl::search(*built->index, queries.values.data(), c.queries, options, pool);
  if (work != nullptr) *work = codes.work();
  CHECK_EQUAL(codes.failure(), std::string());
  check_equal_answers(gpu, cpu,
                      std::string(trawl::metric_name(c.metric)) + ", kind " + std::to_string(c.kind) + ", " + std::to_string(c.n) + " x " +
                          std::to_string(c.d) + ", " + std::to_string(c.queries) + " queries, k " + std::to_string(c.k) + ", " +
                          std::to_string(c.shards) + " shards, seed " + std::to_string(seed));
}

// Random cases with up to `most_rows` rows on the GPU of `gpu`, whose other options they choose.
inline void compare_random(const trawl::GpuOptions& gpu, int count, int64_t most_rows, uint32_t seed, trawl::ThreadPool& pool) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1)); };
  const int64_t dimensions[] = {1, 63, 64, 65, 128, 200, 256, 384, 768, 1024};
  const int64_t numbers[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 63, 64, 65, 127, 128, 129, 300};
  for (int i = 0; i < count; ++i) {
    Case c;
    c.metric = kMetrics[random() % 3];
    c.kind = static_cast<int>(random() % kKinds);
    c.n = pick(0, 3) == 0 ? pick(0, 300) : pick(300, most_rows);
    c.d = dimensions[random() % 10];
    c.queries = numbers[random() % 17];
    c.k = pick(0, 2) == 0 ? pick(1, c.n / 4 + 1) : pick(1, 20);
    c.shards = static_cast<int>(pick(1, 3));
    if (pick(0, 3) == 0) c.live = 0.8;
    if (pick(0, 2) == 0) c.passing = pick(0, 1) == 0 ? 0.5 : 0.02;
    c.options.library = gpu.library;
    c.options.device = gpu.device;
    c.options.max_queries = pick(0, 2) == 0 ? pick(1, 100) : 1024;
    c.options.hit_capacity = pick(0, 2) == 0 ? c.options.max_queries + pick(0, 500) : 1 << 16;
    c.options.sample_divisor = pick(1, 16);
    if (pick(0, 1) == 0) c.options.pairs_at_once = c.queries * pick(100, 1000);
    compare(c, seed * 1000 + static_cast<uint32_t>(i), pool);
  }
}

}  // namespace gpu_cases
