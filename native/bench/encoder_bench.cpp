// Times the forward pass of BERT encoders with random weights and prints a JSON object per line. Threads: default 1 and all.
//   trawl-bench-encoder [--layers 6] [--hidden 384] [--tokens 128,12] [--runs 9] [--threads 1,16] [--isa NAME,...] [--precision int8]
//     [--divide THREADS]
// The instruction set `best` is the engine's own choice. With --divide it instead times single texts that THREADS threads divide, in turns
// with one thread, by the clock.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <thread>

#include "encoder/bert_files.hpp"

using trawl::encoder::BertEncoder;
using trawl::encoder::BertShape;

namespace {

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

double gflop(const BertShape& s, double tokens) {
  const double h = s.hidden, i = s.intermediate;
  return s.layers * (tokens * (8 * h * h + 4 * h * i) + tokens * tokens * 4 * h) / 1e9;
}

// Processor time of all threads: other work on the machine disturbs it less than the time of the clock.
double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string isa_of(const std::string& name) { return name == "best" ? "" : name; }

// Quantiles of a text's time on one thread and on `threads`, in turns. Other work on the machine shows in the later quantiles.
void time_divided(const std::string& path, const std::string& isa, int64_t length, int threads, int runs) {
  BertEncoder encoder(path, isa_of(isa));
  const BertShape& shape = encoder.shape();
  std::vector<int32_t> ids(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) ids[i] = static_cast<int32_t>(i * 7919 % shape.vocabulary);
  std::vector<float> hidden(static_cast<size_t>(length * shape.hidden));
  std::vector<double> times[2];
  const int repeats = std::max<int>(20, static_cast<int>(30 / gflop(shape, static_cast<double>(length)))) * runs;
  for (int run = -10; run < repeats; ++run) {
    for (int divided = 0; divided < 2; ++divided) {
      const auto start = std::chrono::steady_clock::now();
      encoder.run(ids.data(), nullptr, 1, length, hidden.data(), divided ? threads : 1);
      const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
      if (run >= 0) times[divided].push_back(taken.count());
    }
  }
  for (std::vector<double>& each : times) std::sort(each.begin(), each.end());
  std::printf("{\"hidden\":%d,\"layers\":%d,\"tokens\":%d,\"threads\":%d,\"isa\":\"%s\",\"texts\":%d", shape.hidden, shape.layers,
              static_cast<int>(length), threads, isa.c_str(), repeats);
  for (const int percent : {0, 10, 25, 50, 75}) {
    const size_t at = times[0].size() * static_cast<size_t>(percent) / 100;
    std::printf(",\"p%d\":{\"one_ms\":%.3f,\"divided_ms\":%.3f,\"ratio\":%.3f}", percent, times[0][at], times[1][at],
                times[1][at] / times[0][at]);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  BertShape shape = {6, 384, 12, 1536, 30522, 512, 2, 0, -1, 1e-12f};
  std::string tokens = "128,12", isas, thread_counts;
  int runs = 9, divide = 0;
  trawl::encoder::WeightType type = trawl::encoder::WeightType::kBfloat16;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--layers") shape.layers = std::atoi(value.c_str());
    if (name == "--hidden") shape.hidden = std::atoi(value.c_str()), shape.intermediate = 4 * shape.hidden;
    if (name == "--tokens") tokens = value;
    if (name == "--runs") runs = std::atoi(value.c_str());
    if (name == "--threads") thread_counts = value;
    if (name == "--isa") isas = value;
    if (name == "--precision" && value == "int8") type = trawl::encoder::WeightType::kInt8;
    if (name == "--divide") divide = std::atoi(value.c_str());
  }
  shape.heads = shape.hidden % 64 == 0 && shape.hidden >= 768 ? shape.hidden / 64 : shape.hidden / 32;
  const std::string path = "/tmp/trawl-bench-encoder-" + std::to_string(::getpid()) + ".bin";
  bert_files::write_random(path, shape, 1, type);
  std::vector<std::string> names = parts_of(isas);
  if (names.empty()) {
    for (const auto& one : trawl::encoder::list_products(type)) {
      if (one.available && one.name != "portable") names.push_back(one.name);
    }
  }
  if (divide > 0) {
    for (const std::string& length : parts_of(tokens)) {
      for (const std::string& name : names) time_divided(path, name, std::atoi(length.c_str()), divide, runs);
    }
    std::remove(path.c_str());
    return 0;
  }
  const unsigned cores = std::thread::hardware_concurrency();
  if (thread_counts.empty()) thread_counts = cores > 1 ? "1," + std::to_string(cores) : "1";
  for (const std::string& count : parts_of(thread_counts)) {
    const int threads = std::atoi(count.c_str());
    for (const std::string& length_text : parts_of(tokens)) {
      const int64_t length = std::atoi(length_text.c_str());
      std::vector<int32_t> ids(static_cast<size_t>(length));
      for (int64_t i = 0; i < length; ++i) ids[i] = static_cast<int32_t>(i * 7919 % shape.vocabulary);
      std::vector<std::vector<std::unique_ptr<BertEncoder>>> encoders;
      std::vector<std::vector<double>> times(names.size());
      for (const std::string& name : names) {
        encoders.emplace_back();
        for (int t = 0; t < threads; ++t) encoders.back().push_back(std::make_unique<BertEncoder>(path, isa_of(name)));
      }
      const int repeats = std::max<int>(1, static_cast<int>(30 / gflop(shape, static_cast<double>(length))));
      for (int run = -1; run < runs; ++run) {
        for (size_t n = 0; n < names.size(); ++n) {
          const double start = processor_seconds();
          std::vector<std::thread> running;
          for (int t = 0; t < threads; ++t) {
            running.emplace_back([&, t] {
              std::vector<float> hidden(static_cast<size_t>(length * shape.hidden));
              for (int i = 0; i < repeats; ++i) encoders[n][t]->run(ids.data(), nullptr, 1, length, hidden.data());
            });
          }
          for (std::thread& thread : running) thread.join();
          const double taken = (processor_seconds() - start) / threads;
          if (run >= 0) times[n].push_back(taken / repeats);
        }
      }
      for (size_t n = 0; n < names.size(); ++n) {
        std::sort(times[n].begin(), times[n].end());
        const double median = times[n][times[n].size() / 2];
        std::printf(
            "{\"hidden\":%d,\"layers\":%d,\"tokens\":%d,\"threads\":%d,\"isa\":\"%s\",\"median_ms\":%.3f,\"fastest_ms\":%.3f,\"gflop_per_s\":%.1f}\n",
            shape.hidden, shape.layers, static_cast<int>(length), threads, names[n].c_str(), median * 1e3, times[n][0] * 1e3,
            gflop(shape, static_cast<double>(length)) * threads / median);
        std::fflush(stdout);
      }
    }
  }
  std::remove(path.c_str());
}
