// Searches on a GPU, with a test double of its driver.
#ifndef TRAWL_WITHOUT_CUDA_DOUBLE
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../generated/scan_ptx.hpp"
#include "gpu/gpu_state.hpp"
#include "gpu_cases.hpp"

using namespace gpu_cases;

namespace {

// build/NAME/tests and build/cuda-double/libcuda-double.so
std::string program_folder() {
  char path[4096] = {};
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  CHECK(length > 0);
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}
std::string double_path() { return program_folder() + "/../cuda-double/libcuda-double.so"; }
trawl::GpuOptions on_double() {
  trawl::GpuOptions options;
  options.library = double_path();
  return options;
}

}  // namespace

TEST("gpu: the kernels were compiled from these sources (make ptx), and nobody has edited them") {
  const auto fnv1a = [](uint64_t checksum, const auto& bytes) {
    for (const uint8_t byte : bytes) checksum = (checksum ^ byte) * 0x100000001b3ull;
    return checksum;
  };
  constexpr uint64_t kBasis = 0xcbf29ce484222325ull;
  uint64_t sources = kBasis;
  for (const char* name : {"cuda_kernels.hpp", "device.hpp", "scan.cu"}) {
    sources = fnv1a(sources, read_file(program_folder() + "/../../src/gpu/" + name));
  }
  CHECK_EQUAL(sources, trawl::cuda::kPtxOf);
  CHECK_EQUAL(fnv1a(kBasis, std::string(trawl::cuda::scan_ptx())), trawl::cuda::kPtxText);
}

TEST("gpu: random indexes give the same answers with the first pass on a GPU, bit for bit") {
  trawl::ThreadPool pool(2);
  compare_random(on_double(), check::small() ? 10 : 40, check::small() ? 600 : 1200, 1, pool);
}

TEST("gpu: each kernel, around its limits of queries, gives the answers of the CPU") {
  trawl::ThreadPool pool(2);
  for (const int64_t queries : {1, 7, 8, 9, 64, 65, 300}) {
    trawl::GpuWork work;
    Case c = {Metric::kInnerProduct, 1, 1000, 192, queries, 10, 1, {}};
    c.options.library = double_path();
    compare(c, static_cast<uint32_t>(queries), pool, &work);
    CHECK(work.launches >= 2 && work.repeated == 0 && work.hits >= 10 * queries);
  }
}

TEST("gpu: a launch whose hits do not fit is repeated in parts, and no hit is lost") {
  trawl::ThreadPool pool(2);
  for (const int64_t queries : {2, 40, 130}) {
    trawl::GpuWork work;
    Case c = {Metric::kSquaredL2, 3, 300, 64, queries, 5, 2, {}};  // all rows are equal, so all are hits
    c.options.library = double_path();
    c.options.max_queries = c.options.hit_capacity = 130;
    compare(c, 5, pool, &work);
    CHECK(work.repeated > 0);
  }
}

TEST("gpu: filters of every share give the answers of the CPU") {
  trawl::ThreadPool pool(2);
  for (const double share : {0.0, 0.003, 0.1, 0.9}) {
    for (const int64_t queries : {3, 20, 70}) {
      Case c = {Metric::kCosine, 1, 1500, 100, queries, 10, 3, {}};
      c.options.library = double_path();
      c.passing = share;
      c.live = 0.9;
      compare(c, 6, pool);
    }
  }
}

TEST("gpu: a missing driver, GPU or memory is refused with what is needed") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(300, 64, 1);
  const auto built = build(Metric::kInnerProduct, data, pool);
  trawl::GpuOptions options;
  options.library = "libtrawl-missing.so.1";
  const auto refused = trawl::ErrorCode::kDeviceUnavailable;
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), refused, "driver cannot be loaded");
  options.library = "libc.so.6";
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), refused, "has no function cuInit");
  options.library = double_path();
  options.device = 1;
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), refused, "there is no GPU 1: the driver lists 1");
  options.device = 0;
  ::setenv("TRAWL_CUDA_DOUBLE_BYTES", "1000000", 1);
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), refused, "a test double has 1000000 bytes free");
  ::unsetenv("TRAWL_CUDA_DOUBLE_BYTES");
  const auto bad = trawl::ErrorCode::kBadArgument;
  options.hit_capacity = 10;
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), bad, "max_queries is 1024, hit_capacity 10,");
  options = on_double();
  options.pairs_at_once = int64_t{1} << 32;  // all may be hits, and a count of 32 bits would begin again at 0
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), bad, "pairs_at_once below 2^32");
}

TEST("gpu: after a failure in any launch, that search and the later ones have the answers of the CPU") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(900, 64, 1), queries = encoder_like(200, 64, 2);
  oracle::BuildOptions build_options;
  build_options.shards = 3;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  trawl::SearchOptions options;
  const trawl::SearchResult cpu = trawl::search(*built->index, queries.values.data(), 200, options, pool);
  trawl::GpuOptions gpu_options;
  gpu_options.library = double_path();
  gpu_options.max_queries = 70;  // several passes over each shard, with a sample and launches
  gpu_options.pairs_at_once = 70 * 128;
  options.batch_queries = 150;
  int64_t needed = 0;
  {
    const trawl::GpuCodes codes(*built->index, gpu_options, pool);
    options.gpu = &codes;
    trawl::search(*built->index, queries.values.data(), 200, options, pool);
    needed = codes.work().launches;
  }
  CHECK(needed > 12);
  for (int64_t until = 0; until <= needed; ++until) {
    const trawl::GpuCodes codes(*built->index, gpu_options, pool);
    options.gpu = &codes;
    const std::string launches = std::to_string(until);
    ::unsetenv("TRAWL_CUDA_DOUBLE_LAUNCHES");
    trawl::search(*built->index, queries.values.data(), 0, options, pool);
    ::setenv("TRAWL_CUDA_DOUBLE_LAUNCHES", launches.c_str(), 1);
    for (int times = 0; times < 2; ++times) {
      const trawl::SearchResult found = trawl::search(*built->index, queries.values.data(), 200, options, pool);
      check_equal_answers(found, cpu, "failed after " + launches + " launches");
    }
    ::unsetenv("TRAWL_CUDA_DOUBLE_LAUNCHES");
    CHECK(codes.has_failed());  // the second search needs more launches than are left
    CHECK(codes.failure().find("CUDA_ERROR_LAUNCH_FAILED (719)") != std::string::npos);
    const trawl::SearchResult later = trawl::search(*built->index, queries.values.data(), 200, options, pool);
    check_equal_answers(later, cpu, "after the failure");
    CHECK(codes.has_failed());
  }
}

TEST("gpu: of searches at the same time, the first that fails gives the failure") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(300, 64, 1), queries = encoder_like(20, 64, 2);
  const auto built = build(Metric::kInnerProduct, data, pool);
  trawl::SearchOptions options;
  const trawl::SearchResult cpu = trawl::search(*built->index, queries.values.data(), 20, options, pool);
  for (int round = 0; round < (check::small() ? 5 : 30); ++round) {
    const trawl::GpuCodes codes(*built->index, on_double(), pool);
    options.gpu = &codes;
    ::setenv("TRAWL_CUDA_DOUBLE_LAUNCHES", "1", 1);  // the first search has its sample
    const auto search = [&] {
      check_equal_answers(trawl::search(*built->index, queries.values.data(), 20, options, pool), cpu, "beside another search");
    };
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i) others.emplace_back(search);
    search();
    for (std::thread& other : others) other.join();
    ::unsetenv("TRAWL_CUDA_DOUBLE_LAUNCHES");
    CHECK_EQUAL(codes.failure(), std::string("the GPU cannot start trawl_dots: CUDA_ERROR_LAUNCH_FAILED (719)"));
  }
}

TEST("gpu: queries with more candidates than their buffer holds have the answers of the CPU") {
  trawl::ThreadPool pool(2);
  const Data data = make_data(3, 900, 64, 1), queries = encoder_like(40, 64, 2);  // all rows are equal, so all are candidates
  oracle::BuildOptions build_options;
  build_options.shards = 3;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  trawl::SearchOptions options;
  options.candidate_capacity = 8;
  options.candidate_limit = 350;  // reached in the second shard
  const trawl::SearchResult cpu = trawl::search(*built->index, queries.values.data(), 40, options, pool);
  const trawl::GpuCodes codes(*built->index, on_double(), pool);
  options.gpu = &codes;
  const trawl::SearchResult gpu = trawl::search(*built->index, queries.values.data(), 40, options, pool);
  check_equal_answers(gpu, cpu, "more candidates than the limit");
  for (const trawl::QueryStats& stats : gpu.stats) CHECK(stats.full_scan);
  CHECK_EQUAL(codes.failure(), std::string());
}

TEST("gpu: two indexes of other dimensions are searched at the same time") {
  trawl::ThreadPool pool(2);
  const auto search_often = [&](int64_t dimension) {
    const Data data = encoder_like(64, dimension, 1), queries = encoder_like(8, dimension, 2);
    const auto built = build(Metric::kInnerProduct, data, pool);
    trawl::GpuOptions gpu_options;
    gpu_options.library = double_path();
    gpu_options.max_queries = 8;
    gpu_options.hit_capacity = 1 << 10;
    const trawl::GpuCodes codes(*built->index, gpu_options, pool);
    trawl::SearchOptions options;
    const trawl::SearchResult cpu = trawl::search(*built->index, queries.values.data(), 8, options, pool);
    options.gpu = &codes;
    for (int times = 0; times < 12; ++times) {
      check_equal_answers(trawl::search(*built->index, queries.values.data(), 8, options, pool), cpu,
                          std::to_string(dimension) + " dimensions");
    }
    return codes.failure();
  };
  ::setenv("TRAWL_CUDA_DOUBLE_LATE_MS", "10", 1);
  std::string of_other = "no search";
  std::thread other([&] { of_other = search_often(8000); });
  const std::string of_this = search_often(7000);
  other.join();
  ::unsetenv("TRAWL_CUDA_DOUBLE_LATE_MS");
  CHECK_EQUAL(of_this, std::string());
  CHECK_EQUAL(of_other, std::string());
}

TEST("gpu: an upload and a search that waits for another one can be cancelled") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(300, 64, 1), queries = encoder_like(2, 64, 2);
  const auto built = build(Metric::kInnerProduct, data, pool);
  trawl::GpuOptions gpu_options;
  gpu_options.library = double_path();
  std::atomic<bool> cancel{true};
  const auto cancelled = trawl::ErrorCode::kCancelled;
  CHECK_REFUSED(trawl::GpuCodes(*built->index, gpu_options, pool, &cancel), cancelled, "cancelled");
  const trawl::GpuCodes codes(*built->index, gpu_options, pool);
  cancel = false;
  trawl::SearchOptions options;
  options.gpu = &codes;
  options.cancel = &cancel;
  const std::lock_guard<std::timed_mutex> other_search(codes.state().mutex);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel = true;
  });
  CHECK_REFUSED(trawl::search(*built->index, queries.values.data(), 2, options, pool), cancelled, "cancelled");
  canceller.join();
  CHECK(!codes.has_failed());
}

TEST("gpu: the GPUs of a machine are listed with their free memory") {
  const trawl::GpuList found = trawl::list_gpus(double_path());
  CHECK_EQUAL(found.driver_version, std::string("13.0"));
  CHECK_EQUAL(found.gpus.size(), size_t{1});
  CHECK_EQUAL(found.gpus[0].name, std::string("a test double"));
  CHECK(found.gpus[0].problem.empty() && found.gpus[0].free_bytes > 0 && found.gpus[0].total_bytes == int64_t{1} << 30);
  CHECK_REFUSED(trawl::list_gpus("libtrawl-missing.so.1"), trawl::ErrorCode::kDeviceUnavailable, "driver cannot be loaded");
}

TEST("gpu: the codes of another index are refused") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(300, 64, 1), queries = encoder_like(2, 64, 2);
  const auto one = build(Metric::kInnerProduct, data, pool), other = build(Metric::kInnerProduct, data, pool);
  trawl::GpuOptions gpu_options;
  gpu_options.library = double_path();
  const trawl::GpuCodes codes(*one->index, gpu_options, pool);
  trawl::SearchOptions options;
  options.gpu = &codes;
  CHECK_REFUSED(trawl::search(*other->index, queries.values.data(), 2, options, pool), trawl::ErrorCode::kBadArgument, "another index");
}
#endif
