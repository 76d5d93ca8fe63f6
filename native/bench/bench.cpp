// Measures the speed of the search and prints one JSON object per line. dots_per_s is queries x rows per second; 1 GB is 10^9
// bytes.
//
//   bench [--rows N] [--dimension D] [--queries 1,16,64] [--k K] [--threads 1,2] [--isa NAME] [--repeats R]
//         [--sample faiss-flat-file] [--keep DIR] [--metric ip|l2|cosine] [--vectors faiss-flat-file]
//         [--prefilter H,... [--prefilter-always 1]] [--warm 1] [--kernels 1]
//
// --isa NAME,... measures several in turns; "best" is the engine's own choice. --kernels 1 instead times the kernels alone on one thread
// over rows that fit the second cache level.
// --vectors searches a FAISS flat index instead of synthetic vectors; its first rows are the queries.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "dense/codes/query_pack.hpp"
#include "dense/kernels/kernel_choice.hpp"
#include "dense/search/scan_codes.hpp"
#include "synthetic.hpp"
#include "trawl/trawl.hpp"

namespace {

// The kernels of a name, or the engine's choice.
trawl::KernelChoice choice_of(const std::string& name) {
  if (name.empty() || name == "best") return trawl::choose_kernels("");
  return trawl::choose_kernels(name);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Processor time of all threads; other processes hardly change it.
double cpu_s() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> list;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) list.push_back(item);
  if (list.empty()) list.push_back("");
  return list;
}

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> list;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) list.push_back(std::atoll(item.c_str()));
  return list;
}

// Rate at which all threads read the mapped codes: the upper limit for a search with one query.
double read_gb_per_s(const trawl::CodesFile& codes, trawl::ThreadPool& pool) {
  std::vector<double> rates;
  std::atomic<uint64_t> sink{0};
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now_s();
    pool.run(codes.blocks(), [&](int64_t index) {
      const trawl::CodesBlock block = codes.block(index);
      const auto* words = reinterpret_cast<const uint64_t*>(block.codes_i8);
      const int64_t count = codes.rows_per_block() * codes.padded() / 8;
      uint64_t sum[8] = {};
      for (int64_t i = 0; i < count; i += 8) {
        for (int lane = 0; lane < 8; ++lane) sum[lane] += words[i + lane];
      }
      for (const uint64_t s : sum) sink.fetch_add(s, std::memory_order_relaxed);
    });
    rates.push_back(static_cast<double>(codes.blocks() * codes.rows_per_block() * codes.padded()) / (now_s() - start) / 1e9);
  }
  return *std::max_element(rates.begin(), rates.end());
}

// Speed of the kernels alone: they scan the whole file with a threshold that drops every row.
double bare_scan_s(const trawl::CodesFile& codes, const std::vector<double>& queries_f64, int64_t count, const trawl::KernelChoice& choice,
                   trawl::ThreadPool& pool, trawl::Metric metric) {
  using namespace trawl;
  const PackMean mean(metric, codes);
  const PackedQueries packed(CodesPacker(mean), queries_f64.data(), count, choice, pool);
  const Kernels& kernels = packed.kernels;
  std::vector<float> theta(packed.groups * kGroupQueries, std::numeric_limits<float>::infinity());
  const int64_t by_groups = groups_to_scan(kernels, count);
  const double start = now_s();
  pool.run(codes.blocks(), [&](int64_t index) {
    thread_local std::vector<Hit> hits(kMaxHits);
    thread_local std::vector<float> bias;
    const CodesBlock block = codes.block(index);
    bias.resize(codes.rows_per_block());
    const int64_t at_once = rows_at_once(kernels, codes.padded()), next_bytes = at_once * codes.padded();
    const ScanSession session(kernels);
    for (int64_t at = 0; at < block.rows; at += at_once) {
      const int64_t rows = std::min<int64_t>(at_once, block.rows - at);
      CodeRows view = {
          .codes_i8 = block.codes_i8 + at * codes.padded(),
          .padded = codes.padded(),
          .rows = static_cast<int>(rows),
          .scale_f32 = block.scale_f32 + at,
          .residual_f32 = block.residual_f32 + at,
          .test_norm_f32 = block.norm_f32 + at,
          .bias_f32 = bias.data() + at,
          .code_sum_i32 = block.code_sum_i32 + at,
          .first_pass = true,
      };
      const auto test = [&](int64_t q) {
        return (q < by_groups * kGroupQueries ? packed.group_factors() : packed.row_order).from(q, theta.data() + q);
      };
      for (int64_t g = 0; g < by_groups; g += kernels.groups_at_once) {
        const int groups = static_cast<int>(std::min<int64_t>(kernels.groups_at_once, by_groups - g));
        const int8_t* const next = block.codes_i8 + at * codes.padded() + next_bytes;
        view.ahead = next + next_bytes * g / by_groups / 64 * 64;
        view.ahead_bytes = next + next_bytes * (g + groups) / by_groups / 64 * 64 - view.ahead;
        kernels.scan_groups(view, packed.lane_order_i8.data() + g * kGroupQueries * codes.padded(), groups, test(g * kGroupQueries),
                            hits.data());
        view.first_pass = false;
      }
      for (int64_t q = by_groups * kGroupQueries; q < count; q += kMaxRowsQueries) {
        const int some = static_cast<int>(std::min<int64_t>(kMaxRowsQueries, count - q));
        kernels.scan_rows(view, packed.row_order_i8.data() + q * codes.padded(), some, test(q), hits.data());
        view.first_pass = false;
      }
    }
  });
  return now_s() - start;
}

bool file_exists(const std::string& path, int64_t bytes) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && (bytes < 0 || info.st_size == bytes);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = {{"--rows", "1000000"},
                                                {"--dimension", "768"},
                                                {"--queries", "1,16,64,128,256,512"},
                                                {"--k", "10"},
                                                {"--threads", "0"},
                                                {"--isa", ""},
                                                {"--repeats", "5"},
                                                {"--sample", ""},
                                                {"--keep", "/tmp/trawl-bench"},
                                                {"--metric", "ip"},
                                                {"--vectors", ""},
                                                {"--prefilter", ""},
                                                {"--refined-share", "0.001953125"},
                                                {"--prefilter-always", "0"},
                                                {"--warm", "1"},
                                                {"--kernels", "0"}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (options.count(argv[i]) == 0) {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
    options[argv[i]] = argv[i + 1];
  }
  if (options["--kernels"] != "0") {
    const double start = now_s();
    const trawl::ChosenIsas chosen = trawl::chosen_isas();
    std::printf("{\"case\":\"choice\",\"few\":\"%s\",\"many\":\"%s\",\"codes_from\":%lld,\"prefilters_from\":%lld,\"seconds\":%.3f}\n",
                chosen.small_batch.c_str(), chosen.large_batch.c_str(), (long long)chosen.codes_from, (long long)chosen.prefilters_from,
                now_s() - start);
    for (const int64_t padded : {320, 384, 768, 1024}) {
      for (const int64_t count : {16, 32, 48, 64, 96, 128, 256, 512}) {
        const std::vector<std::string> names = names_of(options["--isa"]);
        std::vector<double> best(names.size(), 1e9);
        for (int repeat = 0; repeat < std::atoi(options["--repeats"].c_str()); ++repeat) {
          for (size_t i = 0; i < names.size(); ++i) {
            best[i] = std::min(best[i], trawl::scan_seconds(choice_of(names[i]).of(count, padded), count, padded));
          }
        }
        std::printf("{\"case\":\"kernels\",\"bytes\":%lld,\"queries\":%lld", (long long)padded, (long long)count);
        for (size_t i = 0; i < names.size(); ++i) {
          std::printf(",\"%s\":%.1f", names[i].c_str(), 1e-6 * static_cast<double>(trawl::kTimedRows * count) / best[i]);
        }
        std::printf("}\n");
        std::fflush(stdout);
      }
    }
    return 0;
  }
  const std::string vectors = options["--vectors"];
  int64_t n = std::atoll(options["--rows"].c_str());
  const trawl::Metric metric = options["--metric"] == "l2"       ? trawl::Metric::kSquaredL2
                               : options["--metric"] == "cosine" ? trawl::Metric::kCosine
                                                                 : trawl::Metric::kInnerProduct;
  const int64_t all_threads = std::max(1u, std::thread::hardware_concurrency());
  trawl::ThreadPool pool(all_threads);
  const bench::Synthetic synthetic(options["--sample"], std::atoll(options["--dimension"].c_str()));
  int64_t d = synthetic.dimension();
  if (!vectors.empty()) bench::read_flat_header(vectors, n, d);
  ::mkdir(options["--keep"].c_str(), 0755);
  const std::string stem = options["--keep"] + "/" + (vectors.empty() ? "" : "own-") + std::to_string(n) + "x" + std::to_string(d);
  const std::string rows_path = vectors.empty() ? stem + ".f32" : vectors, codes_path = stem + "." + options["--metric"] + ".i8";
  if (vectors.empty() && !file_exists(rows_path, n * d * 4)) {
    FILE* file = std::fopen(rows_path.c_str(), "wb");
    std::vector<float> block(4096 * d);
    for (int64_t first = 0; first < n; first += 4096) {
      const int64_t count = std::min<int64_t>(4096, n - first);
      synthetic.rows(1, first, count, block.data(), pool);
      std::fwrite(block.data(), 4, count * d, file);
    }
    std::fclose(file);
  }
  const auto rows =
      std::make_shared<trawl::Rows>(std::vector<trawl::RowSegment>{{rows_path, vectors.empty() ? 0 : bench::kFlatHeaderBytes, n * d * 4}},
                                    trawl::RowType::kFloat32, n, d);
  if (!file_exists(codes_path, -1)) {
    const double start = now_s();
    trawl::CodesWriter writer(codes_path, metric, d);
    std::vector<float> block(1024 * d);
    for (int64_t first = 0; first < n; first += 1024) {
      const int64_t count = std::min<int64_t>(1024, n - first);
      for (int64_t i = 0; i < count; ++i) rows->copy_row(first + i, block.data() + i * d);
      writer.append(block.data(), count, pool);
    }
    writer.finish(pool);
    std::printf("{\"case\":\"encode\",\"rows\":%lld,\"dimension\":%lld,\"rows_per_s\":%.0f}\n", (long long)n, (long long)d,
                static_cast<double>(n) / (now_s() - start));
  }
  const auto codes = trawl::CodesFile::open(codes_path);
  // One index without a prefilter, and one for each number in --prefilter. 0: make_prefilter chooses the number.
  std::vector<std::shared_ptr<const trawl::PrefilterFile>> prefilters = {nullptr};
  for (const int64_t components : numbers(options["--prefilter"])) {
    const std::string path = codes_path + ".prefilter" + std::to_string(components);
    const double start = now_s();
    trawl::PrefilterOptions prefilter_options;
    prefilter_options.components = components;
    const bool there = file_exists(path, -1);
    trawl::PrefilterResult made = {components, "the file exists"};
    if (!there) made = trawl::make_prefilter(path, *codes, *rows, prefilter_options, pool);
    std::printf("{\"case\":\"prefilter\",\"components\":%lld,\"reason\":\"%s\",\"seconds\":%.2f}\n", (long long)made.components,
                made.reason.c_str(), now_s() - start);
    if (file_exists(path, -1)) prefilters.push_back(trawl::PrefilterFile::open(path));
  }
  std::vector<trawl::Index> indexes;
  for (const auto& prefilter : prefilters) {
    indexes.emplace_back(metric, d);
    indexes.back().add_shard(rows, codes, prefilter);
  }
  const std::vector<std::string> names = names_of(options["--isa"]);
  std::vector<trawl::KernelChoice> choices;
  for (const std::string& name : names) choices.push_back(choice_of(name));
  const auto repeats = std::atoi(options["--repeats"].c_str()), warm = std::atoi(options["--warm"].c_str());
  for (int64_t threads : numbers(options["--threads"])) {
    if (threads == 0) threads = all_threads;
    pool.set_threads(threads);
    const double read_rate = read_gb_per_s(*codes, pool);
    for (const int64_t count : numbers(options["--queries"])) {
      std::vector<float> queries(count * d);
      if (vectors.empty()) {
        synthetic.rows(2, 0, count, queries.data(), pool);
      } else {
        for (int64_t q = 0; q < count; ++q) rows->copy_row(q % n, queries.data() + q * d);
      }
      const std::vector<double> queries_f64(queries.begin(), queries.end());
      struct Times {
        std::vector<double> bare, full, bare_cpu, full_cpu;
        trawl::SearchResult result;
      };
      std::vector<Times> times(indexes.size() * choices.size());
      // They alternate; the first round warms up. The bare pass is over the codes, so it is measured without prefilters only.
      for (int repeat = -warm; repeat < std::max(repeats, 1); ++repeat) {
        for (size_t one = 0; one < times.size(); ++one) {
          const trawl::KernelChoice& choice = choices[one / indexes.size()];
          const bool is_bare = one % indexes.size() == 0;
          trawl::SearchOptions search_options;
          search_options.k = std::atoll(options["--k"].c_str());
          search_options.kernels = &choice;
          search_options.prefilter.always = options["--prefilter-always"] != "0";
          search_options.prefilter.refined_share = std::atof(options["--refined-share"].c_str());
          const double cpu0 = cpu_s();
          const double bare_s = is_bare ? bare_scan_s(*codes, queries_f64, count, choice, pool, metric)
                                : times[one - one % indexes.size()].bare.empty() ? 0
                                                                                 : times[one - one % indexes.size()].bare.back();
          const double cpu1 = cpu_s();
          const double start = now_s();
          times[one].result = trawl::search(indexes[one % indexes.size()], queries.data(), count, search_options, pool);
          const double full_s = now_s() - start;
          if (repeat < 0) continue;
          times[one].bare.push_back(bare_s);
          times[one].full.push_back(full_s);
          times[one].bare_cpu.push_back(is_bare ? cpu1 - cpu0 : times[one - one % indexes.size()].bare_cpu.back());
          times[one].full_cpu.push_back(cpu_s() - cpu1);
        }
      }
      for (size_t one = 0; one < times.size(); ++one) {
        const size_t with = one % indexes.size();
        const std::string& name = names[one / indexes.size()];
        const trawl::KernelChoice& choice = choices[one / indexes.size()];
        const auto& [bare, full, bare_cpu, full_cpu, result] = times[one];
        std::vector<double> rescored, survivors, refined;
        for (const trawl::QueryStats& stats : result.stats) {
          rescored.push_back(static_cast<double>(stats.rescored));
          survivors.push_back(static_cast<double>(stats.survivors));
          refined.push_back(static_cast<double>(stats.refined));
        }
        std::sort(rescored.begin(), rescored.end());
        const double dots = static_cast<double>(n) * static_cast<double>(count);
        const double codes_gb = static_cast<double>(codes->bytes()) / 1e9;
        std::printf(
            "{\"case\":\"flat\",\"asked\":\"%s\",\"isa\":\"%s\",\"metric\":\"%s\",\"rows\":%lld,\"dimension\":%lld,\"k\":%s,\"queries\":%lld,"
            "\"threads\":%lld,\"bare_dots_per_s\":%.4g,\"dots_per_s\":%.4g,\"of_bare\":%.3f,\"median_ms\":%.3f,\"best_ms\":%.3f,\"bare_best_dots_per_s\":%.4g,"
            "\"bare_dots_per_cpu_s\":%.4g,\"dots_per_cpu_s\":%.4g,"
            "\"scan_gb_per_s\":%.2f,\"read_gb_per_s\":%.2f,\"survivors_median\":%.0f,\"prefilter\":%lld,\"refined_median\":%.0f,\"refined_max\":%.0f,\"rescored_median\":%.0f,"
            "\"rescored_p95\":%.0f,\"rescored_max\":%.0f}\n",
            name.c_str(), trawl::kernels_name(choice.for_queries(count, with ? prefilters[with]->components() : codes->padded())),
            options["--metric"].c_str(), (long long)n, (long long)d, options["--k"].c_str(), (long long)count, (long long)threads,
            dots / median(bare), dots / median(full), median(bare) / median(full), median(full) * 1e3,
            *std::min_element(full.begin(), full.end()) * 1e3, dots / *std::min_element(bare.begin(), bare.end()), dots / median(bare_cpu),
            dots / median(full_cpu), codes_gb / median(full), read_rate, median(survivors),
            (long long)(prefilters[with] ? prefilters[with]->components() : 0), median(refined),
            *std::max_element(refined.begin(), refined.end()), rescored[rescored.size() / 2], rescored[rescored.size() * 95 / 100],
            rescored.back());
        std::fflush(stdout);
      }
    }
  }
}
