// Tests of float16, mapped rows and files, rounding, the rotation, the thread pool, and errors of the operating system.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/aligned_buffer.hpp"
#include "base/mapped_file.hpp"
#include "dense/codes/rotation.hpp"
#include "dense/codes/rounding.hpp"
#include "oracle.hpp"

using namespace oracle;
using trawl::ErrorCode;

TEST("f16: every value converts to float32 exactly and back, alone and in arrays at odd addresses") {
  std::vector<uint8_t> bytes(1 + 2 * 65536);
  for (int i = 0; i < 65536; ++i) {
    const auto f16 = static_cast<uint16_t>(i);
    std::memcpy(bytes.data() + 1 + 2 * i, &f16, 2);
  }
  std::vector<float> wide(65536);
  trawl::f16_to_f32_array(bytes.data() + 1, 65536, wide.data());
  for (int i = 0; i < 65536; ++i) {
    const float value = trawl::f16_to_f32(static_cast<uint16_t>(i));
    const int exponent = i >> 10 & 31, fraction = i & 1023;
    const double expected =
        (i & 0x8000 ? -1.0 : 1.0) * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
    if (exponent == 31) {
      CHECK(fraction == 0 ? std::isinf(value) && std::isinf(wide[i]) : std::isnan(value) && std::isnan(wide[i]));
      CHECK_EQUAL(trawl::first_not_f16(&value, 1), size_t{0});
      continue;
    }
    CHECK(value == expected && wide[i] == value && std::signbit(value) == (i >= 0x8000));
    uint16_t back;
    CHECK_EQUAL(trawl::first_not_f16(&value, 1), size_t{1});
    trawl::f32_to_f16_array(&value, 1, &back);
    CHECK_EQUAL(back, i);
  }
}

TEST("f16: first_not_f16() finds values between two float16, above the largest and below the smallest") {
  const float yes[] = {0.0f, -0.0f, 65504.0f, 0x1p-24f, 0x1.ffcp0f, -0x1.8p-20f};
  CHECK_EQUAL(trawl::first_not_f16(yes, 6), size_t{6});
  for (const float no : {65505.0f, 65536.0f, 0x1p-25f, 0x1.ffep0f, 0x1.001p-15f, 0x1.8p-24f, 1e-40f, 0.1f}) {
    const float values[] = {1.0f, no};
    CHECK_EQUAL(trawl::first_not_f16(values, 2), size_t{1});
  }
}

#ifdef __linux__
// Bit 63 of /proc/self/pagemap is set if the page is mapped in this process. mincore() would report the page cache.
bool mapped_into_process(uintptr_t address) {
  std::ifstream map("/proc/self/pagemap", std::ios::binary);
  uint64_t entry = 0;
  map.seekg(static_cast<std::streamoff>(address / static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)) * 8));
  map.read(reinterpret_cast<char*>(&entry), 8);
  return (entry >> 63) != 0;
}
#endif

TEST("rows: segments at odd offsets, and rows that span two segments, are read correctly; wrong sizes are refused") {
  TempDir directory;
  const Data data = gaussian(9, 5, 1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.values.data());
  for (const int64_t cut : {1, 19, 20, 21, 90, 179}) {
    const std::string a = directory.file(), b = directory.file();
    std::vector<uint8_t> first(45, 0), second(3, 0);
    first.insert(first.end(), bytes, bytes + cut);
    second.insert(second.end(), bytes + cut, bytes + 180);
    write_file(a, first.data(), first.size());
    write_file(b, second.data(), second.size());
    const std::vector<trawl::RowSegment> segments = {{a, 45, cut}, {b, 3, 0}, {b, 3, 180 - cut}};
    const trawl::Rows rows(segments, trawl::RowType::kFloat32, 9, 5);
    float row[5];
    for (int64_t i = 0; i < 9; ++i) {
      rows.copy_row(i, row);
      CHECK(std::memcmp(row, data.row(i), 20) == 0);
    }
    CHECK_REFUSED(trawl::Rows(segments, trawl::RowType::kFloat32, 10, 5), ErrorCode::kBadFile,
                  "180 bytes, but 10 rows of 5 values need 200");
    CHECK_REFUSED(trawl::Rows({{a, 45, cut + 1}}, trawl::RowType::kFloat32, 9, 5), ErrorCode::kBadFile, "truncated");
    CHECK_REFUSED(trawl::Rows({{a, -1, cut}}, trawl::RowType::kFloat32, 9, 5), ErrorCode::kBadFile, a);
  }
}

TEST("rows: released rows leave the resident memory of the process and can be read again") {
  TempDir directory;
  const int64_t rows_here = 4000, dimension = 129;
  const Data data = gaussian(rows_here, dimension, 2);
  const std::string path = directory.file();
  std::vector<uint8_t> bytes(45, 0);
  const auto* values = reinterpret_cast<const uint8_t*>(data.values.data());
  bytes.insert(bytes.end(), values, values + rows_here * dimension * 4);
  write_file(path, bytes.data(), bytes.size());
  const int64_t cut = 1'000'001;
  const std::vector<trawl::RowSegment> segments = {{path, 45, cut}, {path, 45 + cut, rows_here * dimension * 4 - cut}};
  const trawl::Rows rows(segments, trawl::RowType::kFloat32, rows_here, dimension);
  std::vector<float> row(dimension);
  const auto read_all = [&] {
    for (int64_t i = 0; i < rows_here; ++i) {
      rows.copy_row(i, row.data());
      CHECK(std::memcmp(row.data(), data.row(i), dimension * 4) == 0);
    }
  };
  read_all();
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {7, 1900}, {1930, 40}, {3999, 1}, {0, rows_here}})
    rows.release(first, count);
#ifdef __linux__
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto in_middle = reinterpret_cast<uintptr_t>(rows.bytes_in_place(3000)) / page * page;
  CHECK(!mapped_into_process(in_middle));
#endif
  read_all();
}

TEST("rounding: every value lies between down32 and up32") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 300) - 150);
    CHECK(trawl::up32(value) >= value && (trawl::up32(value) == 0 || trawl::up32(value) >= 0x1p-126f));
    CHECK(trawl::down32(value) <= value && trawl::down32(-value) <= -value);
  }
  CHECK(trawl::up32(0) == 0 && std::isinf(trawl::up32(1e39)) && std::isnan(trawl::up32(std::nan(""))));
  CHECK_EQUAL(trawl::up32(1e-50), 0x1p-126f);
}

TEST("rotation: it keeps norms and inner products, in blocks of 256 and of 64, with the signs of the file format") {
  for (const int64_t padded : {64, 192, 256, 768}) {
    const trawl::Rotation rotation(padded, trawl::kSignSeed);
    std::vector<double> a(padded), b(padded);
    std::mt19937 random(2);
    double dot = 0, rotated = 0;
    for (int64_t j = 0; j < padded; ++j) {
      a[j] = std::normal_distribution<double>()(random);
      b[j] = std::normal_distribution<double>()(random);
      dot += a[j] * b[j];
    }
    rotation.apply(a.data());
    rotation.apply(b.data());
    for (int64_t j = 0; j < padded; ++j) rotated += a[j] * b[j];
    CHECK(std::fabs(dot - rotated) < 1e-9);
  }
  // The signs are part of the format, so they must not change in this version.
  const trawl::Rotation rotation(64, trawl::kSignSeed);
  uint64_t flips = 0;
  for (int j = 0; j < 64; ++j) {
    std::vector<double> unit(64, 0.0);
    unit[j] = 1;
    rotation.apply(unit.data());
    flips |= static_cast<uint64_t>(unit[0] < 0) << j;  // the first row of the Hadamard matrix is all ones
  }
  uint64_t z = trawl::kSignSeed + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  CHECK_EQUAL(flips, z ^ (z >> 31));
}

TEST("pool: every item runs once, on the pool's threads, while the pool's size changes and several threads call run()") {
  trawl::ThreadPool pool(3);
  CHECK_EQUAL(pool.threads(), 3);
  const auto caller = std::this_thread::get_id();
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  std::atomic<bool> on_caller{false};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> seen(round);
        pool.run(round, [&](int64_t i) {
          ++seen[i];
          ++total;
          if (std::this_thread::get_id() == caller) on_caller = true;
        });
        for (auto& each : seen) CHECK_EQUAL(each.load(), 1);
      }
    });
  }
  for (int threads = 1; threads <= 5; ++threads) pool.set_threads(threads);
  for (std::thread& each : callers) each.join();
  CHECK_EQUAL(total.load(), 4 * 49 * 50 / 2);
  CHECK(!on_caller);
  for (const int64_t wrong : {int64_t{-1}, int64_t{0}, int64_t{4097}, (int64_t{1} << 32) + 1}) {
    CHECK_REFUSED(pool.set_threads(wrong), ErrorCode::kBadArgument, "thread count " + std::to_string(wrong));
    CHECK_REFUSED(trawl::ThreadPool{wrong}, ErrorCode::kBadArgument, "not in [1, 4096]");
  }
  CHECK_EQUAL(pool.threads(), 5);
}

#ifdef __linux__
int64_t threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, 8, "Threads:") == 0) return std::stoll(line.substr(8));
  }
  return -1;
}

TEST("pool: no thread starts before the first run(), even if set_threads() was called") {
  const int64_t before = threads_of_process();
  trawl::ThreadPool pool(64);
  pool.set_threads(3);
  CHECK_EQUAL(threads_of_process(), before);
  CHECK_EQUAL(pool.threads(), 3);
  pool.run(1, [](int64_t) {});
  CHECK_EQUAL(threads_of_process(), before + 3);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST("pool: it works with fewer threads if the system refuses more, and throws if the system refuses all") {
  rlimit old;
  CHECK(::getrlimit(RLIMIT_AS, &old) == 0);
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  rlimit tight = old;
  tight.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{100} << 20);  // a stack takes 8 MB
  trawl::ThreadPool some(1000);
  CHECK(::setrlimit(RLIMIT_AS, &tight) == 0);
  std::atomic<int64_t> done{0};
  some.run(100, [&](int64_t) { ++done; });
  const int64_t got = some.threads();
  tight.rlim_cur = 1;
  CHECK(::setrlimit(RLIMIT_AS, &tight) == 0);
  trawl::ThreadPool none(2);
  std::string refused;
  try {
    none.run(1, [](int64_t) {});
  } catch (const trawl::Error& error) {
    refused = trawl::error_code_name(error.code);
  }
  CHECK(::setrlimit(RLIMIT_AS, &old) == 0);
  CHECK_EQUAL(done.load(), 100);
  CHECK(got >= 1 && got < 1000);
  CHECK_EQUAL(refused, std::string("NO_THREADS"));
  none.run(1, [&](int64_t) { ++done; });
  CHECK_EQUAL(done.load(), 101);
}
#endif

TEST("errors: the error of a failed system call has errno, path and operation") {
  const auto expect = [](ErrorCode code, int os_error, const std::string& path, const std::function<void()>& body) {
    try {
      body();
      check::fail(__FILE__, __LINE__, "not refused");
    } catch (const trawl::Error& error) {
      CHECK_EQUAL(trawl::error_code_name(error.code), std::string(trawl::error_code_name(code)));
      CHECK_EQUAL(error.os_error, os_error);
      CHECK_EQUAL(error.path, path);
      CHECK_EQUAL(std::string(error.what()).compare(0, path.size() + 9, path + ": cannot "), 0);
    }
  };
  trawl::ThreadPool pool(1);
  TempDir directory;
  const Data data = gaussian(40, 64, 1);
  const std::string absent = directory.file();
  expect(ErrorCode::kReadFailed, ENOENT, absent, [&] { trawl::CodesFile::open(absent); });
  expect(ErrorCode::kReadFailed, ENOENT, absent, [&] { trawl::Rows({{absent, 0, 4}}, trawl::RowType::kFloat32, 1, 1); });
  expect(ErrorCode::kWriteFailed, ENOENT, absent + "/x", [&] { trawl::CodesWriter(absent + "/x", Metric::kCosine, 8); });
  expect(ErrorCode::kWriteFailed, ENOSPC, "/dev/full", [&] {
    trawl::CodesWriter writer("/dev/full", Metric::kCosine, 64);
    writer.append(data.values.data(), 40, pool);
    writer.finish(pool);
  });
}
#endif

TEST("pool: run() rethrows the first exception, and the pool keeps working") {
  trawl::ThreadPool pool(2);
  std::atomic<int> after{0};
  CHECK_REFUSED(pool.run(1000,
                         [&](int64_t i) {
                           if (i == 3) throw trawl::Error(ErrorCode::kBadFile, "item three");
                           ++after;
                         }),
                ErrorCode::kBadFile, "item three");
  CHECK(after < 1000);
  trawl::ThreadPool one(1);
  after = 0;
  CHECK_REFUSED(one.run(1000,
                        [&](int64_t i) {
                          if (i == 3) throw trawl::Error(ErrorCode::kBadFile, "item three");
                          ++after;
                        }),
                ErrorCode::kBadFile, "item three");
  CHECK_EQUAL(after.load(), 3);
  int count = 0;
  pool.run(1, [&](int64_t) { ++count; });
  CHECK_EQUAL(count, 1);
  // Both items run when the first one throws.
  std::atomic<bool> second_runs{false}, first_threw{false};
  const auto throw_one_after_another = [&](int64_t i) {
    if (i == 0) {
      while (!second_runs) std::this_thread::yield();
      first_threw = true;
      throw trawl::Error(ErrorCode::kBadFile, "the first");
    }
    second_runs = true;
    while (!first_threw) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw trawl::Error(ErrorCode::kBadFile, "the second");
  };
  CHECK_REFUSED(pool.run(2, throw_one_after_another), ErrorCode::kBadFile, "the first");
}

#if defined(__x86_64__)
TEST("pool: its threads compute with subnormal numbers, whatever the thread that starts them does") {
  const uint32_t saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush to zero, subnormals are zero
  trawl::ThreadPool pool(1);
  float product = 0;
  pool.run(1, [&](int64_t) {
    volatile float subnormal = 0x1p-140f;
    product = subnormal * 2;
  });
  _mm_setcsr(saved);
  CHECK_EQUAL(product, 0x1p-139f);
}
#endif

TEST("pool: calls of run() take turns, so a short one does not wait for the end of a long one") {
  trawl::ThreadPool pool(1);
  constexpr int64_t kItems = 2000;
  std::atomic<int64_t> waited{0};
  std::atomic<bool> short_ended{false};
  std::thread long_call([&] {
    pool.run(kItems, [&](int64_t) {
      if (short_ended) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++waited;
    });
  });
  while (waited == 0) std::this_thread::yield();
  pool.run(3, [](int64_t) {});
  short_ended = true;
  long_call.join();
  CHECK(waited < kItems);
}

TEST(
    "mapped files: where a page cannot be read the mapping has zeros, and the file counts as changed, also after it has its old size again") {
  TempDir directory;
  const std::string path = directory.file();
  const std::vector<uint8_t> bytes(1 << 16, 7);
  write_file(path, bytes.data(), bytes.size());
  const auto file = trawl::MappedFile::open(path, 10, 60000), unread = trawl::MappedFile::open(path, 0, -1);
  file->require_unchanged();
  struct stat before;
  CHECK_EQUAL(::stat(path.c_str(), &before), 0);
  CHECK_EQUAL(::truncate(path.c_str(), 5000), 0);
  CHECK_EQUAL(file->data()[4000], 7);
  CHECK_EQUAL(file->data()[50000], 0);
  CHECK_EQUAL(file->data()[59999], 0);
  CHECK_REFUSED(file->require_unchanged(), ErrorCode::kFileChanged, "has 5000 bytes, but had 65536");
  CHECK_REFUSED(unread->require_unchanged(), ErrorCode::kFileChanged, "has 5000 bytes, but had 65536");
  write_file(path, bytes.data(), bytes.size());
  const struct timespec times[] = {before.st_atim, before.st_mtim};
  CHECK_EQUAL(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  CHECK_REFUSED(file->require_unchanged(), ErrorCode::kFileChanged, "could not be read");
  unread->require_unchanged();
  trawl::MappedFile::open(path, 0, -1)->require_unchanged();
}

TEST("mapped files: a page that another library mapped reads as zeros, too; a new look at a restored or replaced file watches that one") {
  TempDir directory;
  const std::string path = directory.file();
  const std::vector<uint8_t> bytes(1 << 16, 7);
  write_file(path, bytes.data(), bytes.size());
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  const auto map = [&] { return static_cast<const uint8_t*>(::mmap(nullptr, 1 << 16, PROT_READ, MAP_SHARED, descriptor, 0)); };
  const uint8_t* const mapping = map();
  const auto watched = trawl::WatchedFile::of_library(path);
  CHECK(watched == trawl::WatchedFile::of_library(path));
  watched->require_unchanged();
  CHECK_EQUAL(::truncate(path.c_str(), 0), 0);
#ifdef __linux__
  CHECK_EQUAL(mapping[30000], 0);
#endif
  write_file(path, bytes.data(), bytes.size());
  CHECK_REFUSED(watched->require_unchanged(), ErrorCode::kFileChanged, path);
  const uint8_t* const second = map();
  const auto again = trawl::WatchedFile::of_library(path);
  CHECK_EQUAL(second[30000], 7);
  again->require_unchanged();
  write_file(path + ".new", bytes.data(), bytes.size());
  CHECK_EQUAL(::rename((path + ".new").c_str(), path.c_str()), 0);
  const auto replaced = trawl::WatchedFile::of_library(path);
  write_file(path, bytes.data(), 100);
  again->require_unchanged();
  CHECK_REFUSED(replaced->require_unchanged(), ErrorCode::kFileChanged, "has 100 bytes");
  ::munmap(const_cast<uint8_t*>(mapping), 1 << 16);
  ::munmap(const_cast<uint8_t*>(second), 1 << 16);
  ::close(descriptor);
}

TEST("mapped files: a signal that no mapping explains ends the process, as before") {
  TempDir directory;
  const std::string path = directory.file();
  write_file(path, "x", 1);
  const auto file = trawl::MappedFile::open(path, 0, -1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);  // a sanitizer, whose handler was there before, would report the signal
    ::raise(SIGBUS);
    ::_exit(0);
  }
  int status = 0;
  CHECK_EQUAL(::waitpid(child, &status, 0), child);
  CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}
