// Speed of the BM25 core, one JSON object a line: analysis, building, size and search.
//
//   lexical-bench TEXTS [--queries FILE,...] [--k 10,1000] [--batch N] [--threads N] [--repeats R] [--analyser english|standard|cjk|whitespace]
//                 [--keep FILE]
//
// TEXTS has a JSON object with the member "contents" a line; a file of queries has one with "question" or "queries".
// --keep is the index to make, or to search if it is there. Checksums of terms and hits show whether a change kept every bit.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_index.hpp"

using namespace trawl::lexical;
using trawl::checksum64;
using trawl::ThreadPool;

namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Processor time of all threads, which other work on the machine hardly changes.
double cpu_s() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

uint32_t hexadecimal(const std::string& line, size_t at) {
  return static_cast<uint32_t>(std::strtoul(line.substr(at, 4).c_str(), nullptr, 16));
}

void append_utf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xF00 >> more & 0xFF) | code >> 6 * more);
  for (int i = more; i-- > 0;) text += static_cast<char>(0x80 | (code >> 6 * i & 0x3F));
}

// The JSON string that begins after the quote at `at`; `at` moves past its end.
std::string json_string(const std::string& line, size_t& at) {
  std::string text;
  for (at++; at < line.size() && line[at] != '"'; at++) {
    if (line[at] != '\\') {
      text += line[at];
      continue;
    }
    const char escape = line[++at];
    if (escape != 'u') {
      const char* found = std::strchr("n\nt\tr\rb\bf\f", escape);
      text += found == nullptr ? escape : found[1];
      continue;
    }
    uint32_t code = hexadecimal(line, at + 1);
    at += 4;
    if (code >= 0xD800 && code < 0xDC00 && line.compare(at + 1, 2, "\\u") == 0) {
      code = 0x10000 + ((code - 0xD800) << 10) + (hexadecimal(line, at + 3) - 0xDC00);
      at += 6;
    }
    append_utf8(code, text);
  }
  at++;
  return text;
}

// The strings of a member of every line: its value, or the elements of its array.
std::vector<std::string> read_member(const std::string& path, const char* member) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::vector<std::string> texts;
  const std::string name = std::string("\"") + member + '"';
  for (std::string line; std::getline(file, line);) {
    size_t at = line.find(name);
    if (at == std::string::npos) continue;
    at = line.find_first_not_of(" \t:", at + name.size());
    if (at == std::string::npos) continue;
    const bool is_array = line[at] == '[';
    if (is_array) at++;
    while (at < line.size() && line[at] == '"') {
      texts.push_back(json_string(line, at));
      if (!is_array) break;
      at = std::min(line.size(), line.find_first_not_of(", ", at));
    }
  }
  return texts;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

std::string name_of(const std::string& path) {
  const size_t folder = path.rfind('/');
  const size_t above = folder == std::string::npos || folder == 0 ? std::string::npos : path.rfind('/', folder - 1);
  return path.substr(above == std::string::npos ? 0 : above + 1);
}

void measure_analysis(const std::vector<std::string>& texts, Analyser analyser, int repeats) {
  uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  Terms terms;
  uint64_t count = 0;
  uint64_t sum = 0;
  for (const std::string& text : texts) {
    analyse(analyser, text, terms);
    count += terms.size();
    for (size_t i = 0; i < terms.size(); i++) sum = checksum64(terms[i].data(), terms[i].size(), sum);
  }
  std::vector<double> rates;
  for (int repeat = 0; repeat < repeats; repeat++) {
    const double start = cpu_s();
    for (const std::string& text : texts) analyse(analyser, text, terms);
    rates.push_back(static_cast<double>(bytes) / 1e6 / (cpu_s() - start));
  }
  std::printf("{\"measured\":\"analysis\",\"mb\":%.2f,\"tokens\":%llu,\"mb_per_cpu_s\":%.1f,\"best\":%.1f,\"checksum\":\"%016llx\"}\n",
              bytes / 1e6, static_cast<unsigned long long>(count), median(rates), *std::max_element(rates.begin(), rates.end()),
              static_cast<unsigned long long>(sum));
  std::fflush(stdout);
}

void measure_build(const std::vector<std::string>& texts, Analyser analyser, const std::string& path, int threads) {
  std::string all;
  std::vector<uint64_t> ends;
  for (const std::string& text : texts) {
    all += text;
    ends.push_back(all.size());
  }
  ThreadPool pool(threads);
  const double cpu_start = cpu_s();
  const double start = wall_s();
  LexicalBuilder builder(path, analyser, pool);
  builder.add(all.data(), ends.data(), ends.size());
  const LexicalBuildSummary built = builder.finish();
  const double wall = wall_s() - start;
  const double cpu = cpu_s() - cpu_start;
  struct stat status;
  stat(path.c_str(), &status);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"measured\":\"build\",\"threads\":%d,\"rows\":%llu,\"terms\":%llu,\"postings\":%llu,\"mb_per_s\":%.1f,\"mb_per_cpu_s\":%.1f,"
      "\"bytes\":%lld,\"bits_per_posting\":%.2f,\"max_resident_mb\":%.0f}\n",
      threads, static_cast<unsigned long long>(built.rows), static_cast<unsigned long long>(built.terms),
      static_cast<unsigned long long>(built.postings), all.size() / 1e6 / wall, all.size() / 1e6 / cpu,
      static_cast<long long>(status.st_size), 8.0 * status.st_size / std::max<uint64_t>(1, built.postings), usage.ru_maxrss / 1024.0);
  std::fflush(stdout);
}

void measure_search(const LexicalIndex& index, const std::string& path, int64_t k, size_t batch, int repeats) {
  std::vector<std::string> queries = read_member(path, "question");
  if (queries.empty()) queries = read_member(path, "queries");
  double start = cpu_s();
  std::vector<std::vector<BagOfWords>> calls;
  for (size_t i = 0; i < queries.size(); i++) {
    if (i % batch == 0) calls.emplace_back();
    calls.back().push_back(bag_of_words(index.analyser(), queries[i]));
  }
  const double analysis = cpu_s() - start;
  if (queries.empty()) {
    std::fprintf(stderr, "%s has no line with the member \"question\" or \"queries\"\n", path.c_str());
    std::exit(1);
  }
  ThreadPool one(1);
  LexicalOptions options;
  options.k = k;
  std::vector<double> times;
  uint64_t sum = 0;
  uint64_t postings = 0;
  uint64_t decoded = 0;
  for (int repeat = 0; repeat <= repeats; repeat++) {
    start = cpu_s();
    for (const std::vector<BagOfWords>& bags : calls) {
      const LexicalResult result = lexical_search(index, bags, options, one);
      if (repeat > 0) continue;
      for (int64_t i = 0; i < result.queries; i++) {
        sum = checksum64(&result.counts[i], 8, sum);
        sum = checksum64(&result.rows[i * result.k], result.k * 8, sum);
        sum = checksum64(&result.scores[i * result.k], result.k * 4, sum);
        postings += result.stats[i].postings;
        decoded += result.stats[i].postings_decoded;
      }
    }
    if (repeat > 0) times.push_back((cpu_s() - start) * 1e3 / queries.size());
  }
  std::printf(
      "{\"measured\":\"search\",\"queries\":\"%s\",\"count\":%zu,\"k\":%lld,\"ms\":%.4f,\"best_ms\":%.4f,\"analysis_ms\":%.4f,"
      "\"postings\":%llu,\"decoded\":%.3f,\"checksum\":\"%016llx\"}\n",
      name_of(path).c_str(), queries.size(), static_cast<long long>(k), median(times), *std::min_element(times.begin(), times.end()),
      analysis * 1e3 / queries.size(), static_cast<unsigned long long>(postings / queries.size()),
      postings == 0 ? 0.0 : static_cast<double>(decoded) / postings, static_cast<unsigned long long>(sum));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::string texts;
  std::string kept;
  std::vector<std::string> queries;
  std::vector<std::string> ks = {"10", "1000"};
  int threads = 2;
  size_t batch = 64;
  int repeats = 5;
  Analyser analyser = Analyser::kEnglish;
  for (int i = 1; i < count; i++) {
    const std::string name = arguments[i];
    if (name[0] != '-' && texts.empty()) {
      texts = name;
      continue;
    }
    if (i + 1 == count) {
      std::fprintf(stderr, "%s has no value\n", name.c_str());
      return 1;
    }
    const std::string value = arguments[++i];
    if (name == "--queries") queries = split(value);
    else if (name == "--k") ks = split(value);
    else if (name == "--batch") batch = std::max(1, std::atoi(value.c_str()));
    else if (name == "--threads") threads = std::atoi(value.c_str());
    else if (name == "--repeats") repeats = std::max(1, std::atoi(value.c_str()));
    else if (name == "--keep") kept = value;
    else if (name == "--analyser" && value == "english") analyser = Analyser::kEnglish;
    else if (name == "--analyser" && value == "standard") analyser = Analyser::kStandard;
    else if (name == "--analyser" && value == "whitespace") analyser = Analyser::kWhitespace;
    else if (name == "--analyser" && value == "cjk") analyser = Analyser::kCjk;
    else {
      std::fprintf(stderr, "unknown argument %s %s\n", name.c_str(), value.c_str());
      return 1;
    }
  }
  const std::string path = kept.empty() ? "/tmp/trawl-lexical-bench-" + std::to_string(::getpid()) + ".bm25" : kept;
  struct stat status;
  if (kept.empty() || stat(path.c_str(), &status) != 0) {
    if (texts.empty()) {
      std::fprintf(stderr, "name a file of texts, or an index with --keep\n");
      return 1;
    }
    const std::vector<std::string> contents = read_member(texts, "contents");
    if (contents.empty()) {
      std::fprintf(stderr, "%s has no line with the member \"contents\"\n", texts.c_str());
      return 1;
    }
    measure_analysis(contents, analyser, repeats);
    measure_build(contents, analyser, path, threads);
  }
  LexicalIndex index;
  index.add_shard(path);
  for (const std::string& file : queries) {
    for (const std::string& k : ks) measure_search(index, file, std::atoll(k.c_str()), batch, repeats);
  }
  if (kept.empty()) std::remove(path.c_str());
}
