// Searches on a GPU, with a test double of its driver.
#ifndef TRAWL_WITHOUT_CUDA_DOUBLE
#include <stdlib.h>

#include "cuda/scan_ptx.hpp"
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

}  // namespace

TEST("gpu: the compiled kernels are those of the sources (make ptx)") {
  uint64_t checksum = 0xcbf29ce484222325ull;
  for (const char* name : {"cuda_kernels.hpp", "device.hpp", "scan.cu"}) {
    for (const uint8_t byte : read_file(program_folder() + "/../../src/cuda/" + name)) checksum = (checksum ^ byte) * 0x100000001b3ull;
  }
  CHECK_EQUAL(checksum, trawl::cuda::kPtxOf);
}

TEST("gpu: random indexes give the same answers with the first pass on a GPU, bit for bit") {
  trawl::ThreadPool pool(2);
  compare_random(double_path(), check::small() ? 10 : 40, check::small() ? 600 : 1200, 1, pool);
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
  options.hit_capacity = 10;
  CHECK_REFUSED(trawl::GpuCodes(*built->index, options, pool), trawl::ErrorCode::kBadArgument, "hit_capacity");
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
