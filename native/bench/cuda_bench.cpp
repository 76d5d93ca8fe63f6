// Searches with the first pass on an NVIDIA GPU, beside the same searches on the CPU. bench/tables/gpu-search-result.ts has the fields.
//
//   trawl-cuda-bench --json FILE [--check SECONDS] [--folder DIR] [--rows N] [--queries 1,8,64,1024] [--k 10] [--threads T]
//                    [--device 0] [--library PATH] [--sample faiss-flat-file] [--repeats 7] [--cpu-repeats 2]
//                    [--sample-divisor 16] [--pairs-at-once 2147483648]
//
// --check compares answers over random indexes, for about that time. With --folder it searches DIR/rows.f16 (float16, N rows) for
// DIR/queries.f32, which cuda_baseline.py makes on the GPU; it makes them itself, slowly, if they are missing. A failure of one
// part is written to the JSON, and the next part begins.
#include <sys/stat.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <thread>

#include "dense/kernels/kernel_choice.hpp"
#include "gpu/gpu_cases.hpp"
#include "synthetic.hpp"

namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
const double started = now_s();

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> list;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) list.push_back(std::atoll(item.c_str()));
  return list;
}

int64_t file_bytes(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : -1;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out;
}

class Object {
 public:
  Object& text(const std::string& name, const std::string& value) { return raw(name, "\"" + escaped(value) + "\""); }
  Object& number(const std::string& name, double value) {
    char out[64];
    std::snprintf(out, sizeof out, "%.9g", value);
    return raw(name, out);
  }
  Object& whole(const std::string& name, int64_t value) { return raw(name, std::to_string(value)); }
  Object& raw(const std::string& name, const std::string& value) {
    fields_ += (fields_.empty() ? "" : ", ") + ("\"" + name + "\": ") + value;
    return *this;
  }
  std::string str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

// The file is whole after every part.
class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}
  void add(const Object& part) {
    parts_.push_back(part.str());
    std::printf("[%7.2f s] %s\n", now_s() - started, part.str().c_str());
    std::fflush(stdout);
    FILE* file = std::fopen(path_.c_str(), "w");
    if (file == nullptr) return;
    std::fprintf(file, "[\n");
    for (size_t i = 0; i < parts_.size(); ++i) std::fprintf(file, "  %s%s\n", parts_[i].c_str(), i + 1 < parts_.size() ? "," : "");
    std::fprintf(file, "]\n");
    std::fclose(file);
  }
  template <typename Body>
  bool part(const std::string& name, Body body) {
    try {
      body();
      return true;
    } catch (const std::exception& error) {
      failed = true;
      add(Object().text("part", name).text("error", error.what()));
      return false;
    }
  }
  bool failed = false;

 private:
  std::string path_;
  std::vector<std::string> parts_;
};

void progress(const std::string& what) {
  std::printf("[%7.2f s] %s\n", now_s() - started, what.c_str());
  std::fflush(stdout);
}

void check_answers(const trawl::GpuOptions& gpu, double seconds, trawl::ThreadPool& pool, Report& report) {
  using namespace gpu_cases;
  const double start = now_s();
  int cases = 0;
  // Each kernel with all its remainders first, then random cases until the time is over.
  for (const int64_t queries : {1, 2, 4, 5, 8, 9, 64, 65, 128, 300, 1024}) {
    for (const Metric metric : kMetrics) {
      Case c = {metric, 1, 5000, 768, queries, 10, 1, gpu};
      compare(c, static_cast<uint32_t>(queries), pool);
      ++cases;
    }
  }
  progress("fixed cases agree");
  for (uint32_t seed = 1; now_s() - start < seconds; ++seed) {
    compare_random(gpu, 5, 6000, seed, pool);
    cases += 5;
  }
  report.add(Object().text("part", "check").whole("cases", cases).whole("different", 0).number("seconds", now_s() - start));
}

void make_rows(const std::string& folder, int64_t n, const std::string& sample, trawl::ThreadPool& pool) {
  const bench::Synthetic synthetic(sample, 768);
  const int64_t d = synthetic.dimension();
  std::vector<float> values(4096 * d);
  std::vector<_Float16> halves(4096 * d);
  FILE* file = std::fopen((folder + "/rows.f16").c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write to " + folder);
  for (int64_t first = 0; first < n; first += 4096) {
    const int64_t count = std::min<int64_t>(4096, n - first);
    synthetic.rows(1, first, count, values.data(), pool);
    for (int64_t i = 0; i < count * d; ++i) halves[i] = static_cast<_Float16>(values[i]);
    std::fwrite(halves.data(), 2, static_cast<size_t>(count * d), file);
  }
  std::fclose(file);
  values.resize(1024 * d);
  synthetic.rows(2, 0, 1024, values.data(), pool);
  oracle::write_file(folder + "/queries.f32", values.data(), values.size() * 4);
}

void make_codes(const std::string& path, const trawl::Rows& rows, trawl::ThreadPool& pool) {
  const int64_t d = rows.dimension(), n = rows.rows(), at_once = 65536;
  trawl::CodesWriter writer(path, trawl::Metric::kInnerProduct, d);
  std::vector<float> values(at_once * d);
  for (int64_t first = 0; first < n; first += at_once) {
    const int64_t count = std::min(at_once, n - first);
    pool.run((count + 255) / 256, [&](int64_t item) {
      for (int64_t i = item * 256; i < std::min(count, item * 256 + 256); ++i) rows.copy_row(first + i, values.data() + i * d);
    });
    writer.append(values.data(), count, pool);
  }
  writer.finish(pool);
}

struct Timed {
  std::vector<double> ms;
  trawl::SearchResult result;
};

Timed time_searches(const trawl::Index& index, const std::vector<float>& queries, int64_t count, const trawl::SearchOptions& options,
                    int64_t repeats, int64_t warm_ups, trawl::ThreadPool& pool) {
  Timed timed;
  for (int64_t i = 0; i < repeats + warm_ups; ++i) {
    const double start = now_s();
    timed.result = trawl::search(index, queries.data(), count, options, pool);
    if (i >= warm_ups) timed.ms.push_back((now_s() - start) * 1e3);
  }
  return timed;
}

void add_times(Object& object, const std::string& prefix, const std::vector<double>& ms) {
  object.number(prefix + "_ms", median(ms));
  object.number(prefix + "_best_ms", *std::min_element(ms.begin(), ms.end()));
  object.number(prefix + "_worst_ms", *std::max_element(ms.begin(), ms.end()));
  object.whole(prefix + "_repeats", static_cast<int64_t>(ms.size()));
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = {{"--json", "cuda-bench.json"},
                                                {"--check", "0"},
                                                {"--folder", ""},
                                                {"--rows", "10000000"},
                                                {"--queries", "1,8,64,1024"},
                                                {"--k", "10"},
                                                {"--threads", "0"},
                                                {"--device", "0"},
                                                {"--library", ""},
                                                {"--sample", ""},
                                                {"--repeats", "7"},
                                                {"--cpu-repeats", "2"},
                                                {"--sample-divisor", "16"},
                                                {"--pairs-at-once", "2147483648"}};
  for (int i = 1; i < argc; i += 2) {
    if (options.count(argv[i]) == 0 || i + 1 == argc) {
      std::fprintf(stderr, "%s is not an option, or has no value\n", argv[i]);
      return 2;
    }
    options[argv[i]] = argv[i + 1];
  }
  const auto number = [&](const char* name) { return std::atoll(options[name].c_str()); };
  Report report(options["--json"]);
  const int64_t threads = number("--threads") > 0 ? number("--threads") : std::max(1u, std::thread::hardware_concurrency());
  trawl::ThreadPool pool(threads);
  trawl::GpuOptions gpu;
  gpu.device = number("--device");
  gpu.library = options["--library"];
  const std::string isa_few = trawl::choose_kernels().small_batch->name, isa_many = trawl::choose_kernels().large_batch->name;
  report.add(Object().text("part", "machine").whole("threads", threads).text("isa_few", isa_few).text("isa_many", isa_many));

  if (number("--check") > 0) {
    report.part("check", [&] { check_answers(gpu, static_cast<double>(number("--check")), pool, report); });
  }
  const std::string folder = options["--folder"];
  if (folder.empty()) return report.failed;

  const int64_t n = number("--rows"), d = 768;
  std::unique_ptr<trawl::Index> index;
  std::vector<float> queries(1024 * d);
  report.part("index", [&] {
    const double start = now_s();
    ::mkdir(folder.c_str(), 0755);
    if (file_bytes(folder + "/rows.f16") != n * d * 2 || file_bytes(folder + "/queries.f32") != 1024 * d * 4) {
      make_rows(folder, n, options["--sample"], pool);
      progress("rows made");
    }
    const auto rows =
        std::make_shared<trawl::Rows>(std::vector<trawl::RowSegment>{{folder + "/rows.f16", 0, n * d * 2}}, trawl::RowType::kFloat16, n, d);
    const std::vector<uint8_t> bytes = oracle::read_file(folder + "/queries.f32");
    std::memcpy(queries.data(), bytes.data(), queries.size() * 4);
    const double before_codes = now_s();
    const std::string codes_path = folder + "/codes.i8";
    const bool there = file_bytes(codes_path) > n * d;
    if (!there) make_codes(codes_path, *rows, pool);
    const double codes_s = now_s() - before_codes;
    index = std::make_unique<trawl::Index>(trawl::Metric::kInnerProduct, d);
    index->add_shard(rows, trawl::CodesFile::open(codes_path));
    report.add(Object()
                   .text("part", "index")
                   .whole("rows", n)
                   .whole("dimension", d)
                   .number("seconds", now_s() - start)
                   .number("codes_seconds", there ? 0 : codes_s)
                   .whole("codes_bytes", file_bytes(codes_path)));
  });
  if (!index) return 1;

  trawl::SearchOptions search_options;
  search_options.k = number("--k");
  std::map<int64_t, trawl::SearchResult> by_gpu;
  for (const int64_t divisor : numbers(options["--sample-divisor"])) {
    for (const int64_t pairs : numbers(options["--pairs-at-once"])) {
      report.part("gpu", [&] {
        gpu.sample_divisor = divisor;
        gpu.pairs_at_once = pairs;
        const double start = now_s();
        const trawl::GpuCodes codes(*index, gpu, pool);
        report.add(Object()
                       .text("part", "upload")
                       .text("gpu", codes.device_name())
                       .text("cuda", codes.driver_version())
                       .whole("gpu_bytes", codes.bytes())
                       .number("seconds", now_s() - start));
        for (const int64_t count : numbers(options["--queries"])) {
          trawl::SearchOptions with = search_options;
          with.gpu = &codes;
          with.batch_queries = 1024;
          time_searches(*index, queries, count, with, 0, 2, pool);
          codes.reset_work();
          const int64_t repeats = number("--repeats");
          const Timed timed = time_searches(*index, queries, count, with, repeats, 0, pool);
          const trawl::GpuWork work = codes.work();
          double survivors = 0, rescored = 0, full = 0;
          for (const trawl::QueryStats& stats : timed.result.stats) {
            survivors += static_cast<double>(stats.survivors) / static_cast<double>(count);
            rescored += static_cast<double>(stats.rescored) / static_cast<double>(count);
            full += stats.full_scan;
          }
          const auto searches = static_cast<double>(repeats);
          Object object;
          object.text("part", "gpu")
              .whole("queries", count)
              .whole("k", search_options.k)
              .whole("rows", n)
              .whole("sample_divisor", divisor)
              .whole("pairs_at_once", pairs);
          add_times(object, "search", timed.ms);
          object.number("device_ms", work.milliseconds / searches)
              .number("sample_device_ms", work.sample_milliseconds / searches)
              .number("launches", static_cast<double>(work.launches) / searches)
              .number("repeated", static_cast<double>(work.repeated) / searches)
              .number("hits_per_query", static_cast<double>(work.hits) / searches / static_cast<double>(count))
              .number("survivors_per_query", survivors)
              .number("rescored_per_query", rescored)
              .number("full_scans", full)
              .number("device_tops", 2e-9 * static_cast<double>(n) * static_cast<double>(count) * static_cast<double>(d) /
                                         (work.milliseconds / searches) / 1e3)
              .number("device_gb_per_s", static_cast<double>(n) * static_cast<double>(d) / (work.milliseconds / searches) / 1e6);
          report.add(object);
          by_gpu[count] = timed.result;
        }
      });
    }
  }
  if (by_gpu.count(1024) > 0) {
    const trawl::SearchResult& all = by_gpu[1024];
    oracle::write_file(folder + "/answers.i64", all.rows.data(), all.rows.size() * 8);
    oracle::write_file(folder + "/answers.f64", all.scores.data(), all.scores.size() * 8);
  }
  if (number("--cpu-repeats") > 0) {
    for (const int64_t count : numbers(options["--queries"])) {
      report.part("cpu", [&] {
        const int64_t repeats = count <= 64 ? 2 * number("--cpu-repeats") + 1 : number("--cpu-repeats");
        const Timed timed = time_searches(*index, queries, count, search_options, repeats, count <= 64 ? 1 : 0, pool);
        Object object;
        object.text("part", "cpu").whole("queries", count).whole("k", search_options.k).whole("rows", n).whole("threads", threads);
        add_times(object, "search", timed.ms);
        if (by_gpu.count(count) > 0) {
          gpu_cases::check_equal_answers(by_gpu[count], timed.result, "the large index");
          object.text("same_bits_as_gpu", "yes");
        }
        report.add(object);
      });
    }
  }
  return report.failed;
}
