// A second, simple implementation of the score, which shares no code with src/, and helpers that build indexes.
#pragma once
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "trawl/trawl.hpp"

namespace oracle {

using trawl::Metric;

// `volatile` makes the compiler round the square, even if it fuses multiply-adds.
inline double score(Metric metric, const float* q, const float* x, int64_t d) {
  double sum = 0, qq = 0, xx = 0;
  for (int64_t j = 0; j < d; ++j) {
    const double a = q[j], b = x[j];
    if (metric == Metric::kSquaredL2) {
      const volatile double difference = a - b;
      const volatile double square = difference * difference;
      sum = sum + square;
    } else {
      sum = sum + a * b;
      qq = qq + a * a;
      xx = xx + b * b;
    }
  }
  if (metric == Metric::kSquaredL2) return 0.0 - sum;
  if (metric == Metric::kInnerProduct) return sum;
  const double nq = std::sqrt(qq), nx = std::sqrt(xx);
  return nq == 0 || nx == 0 ? 0.0 : sum / nq / nx;
}

struct Data {
  int64_t n, d;
  std::vector<float> values;
  const float* row(int64_t i) const { return values.data() + i * d; }
  float* row(int64_t i) { return values.data() + i * d; }
};

using Hits = std::vector<std::pair<double, int64_t>>;

inline bool passes(const uint64_t* bits, int64_t row) { return bits == nullptr || (bits[row / 64] >> (row % 64) & 1) != 0; }

inline std::vector<uint64_t> random_bits(int64_t rows, std::mt19937& random) {
  std::vector<uint64_t> bits((rows + 63) / 64);
  for (uint64_t& word : bits) word = random() | static_cast<uint64_t>(random()) << 32;
  return bits;
}

inline Hits top_k(Metric metric, const float* q, const Data& data, int64_t k, const uint64_t* filter = nullptr,
                  const uint64_t* live = nullptr) {
  Hits hits;
  for (int64_t i = 0; i < data.n; ++i) {
    if (!passes(filter, i) || !passes(live, i)) continue;
    hits.push_back({score(metric, q, data.row(i), data.d), i});
  }
  std::stable_sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (static_cast<int64_t>(hits.size()) > k) hits.resize(k);
  return hits;
}

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/trawl-test-XXXXXX";
    CHECK(::mkdtemp(&path_[0]) != nullptr);
  }
  ~TempDir() {
    for (int i = 0; i < made_; ++i) std::remove(numbered(i).c_str());
    ::rmdir(path_.c_str());
  }
  std::string file() { return numbered(made_++); }

 private:
  std::string numbered(int i) const { return path_ + "/" + std::to_string(i); }
  std::string path_;
  int made_ = 0;
};

inline void write_file(const std::string& path, const void* bytes, size_t count) {
  FILE* file = std::fopen(path.c_str(), "wb");
  CHECK(file != nullptr);
  CHECK(count == 0 || std::fwrite(bytes, 1, count, file) == count);
  std::fclose(file);
}

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::vector<uint8_t> bytes;
  FILE* file = std::fopen(path.c_str(), "rb");
  CHECK(file != nullptr);
  uint8_t buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    bytes.insert(bytes.end(), buffer, buffer + got);
  }
  std::fclose(file);
  return bytes;
}

struct BuildOptions {
  int shards = 1;
  int64_t rows_per_block = 16;
  std::vector<float> mean;
  bool half = false;         // stores the rows as float16 (they must be representable)
  bool split_files = false;  // stores the rows in three files that begin and end inside rows, after a header of odd length
  bool with_codes = true;
  int64_t prefilter = 0;       // number of components; 0, or more than the dimension: no prefilter
  std::vector<uint64_t> live;  // empty: all rows
};

// An index over the data in shards of about equal size, with its temporary files.
struct Built {
  TempDir directory;
  std::vector<std::vector<uint16_t>> halves;
  std::unique_ptr<trawl::Index> index;
};

inline std::unique_ptr<Built> build(Metric metric, const Data& data, trawl::ThreadPool& pool, const BuildOptions& options = {}) {
  auto built = std::make_unique<Built>();
  built->index = std::make_unique<trawl::Index>(metric, data.d);
  for (int s = 0; s < options.shards; ++s) {
    const int64_t first = data.n * s / options.shards, end = data.n * (s + 1) / options.shards, count = end - first;
    std::shared_ptr<const trawl::CodesFile> codes;
    std::shared_ptr<const trawl::PrefilterFile> prefilter;
    if (options.with_codes) {
      const std::string path = built->directory.file();
      trawl::CodesWriterOptions writer_options;
      writer_options.rows_per_block = options.rows_per_block;
      writer_options.mean_f32 = options.mean;
      trawl::CodesWriter writer(path, metric, data.d, writer_options);
      const int64_t part = count / 3;
      writer.append(data.row(first), part, pool);
      writer.append(data.row(first + part), count - part, pool);
      writer.finish(pool);
      codes = trawl::CodesFile::open(path);
    }
    const void* bytes = data.row(first);
    auto type = trawl::RowType::kFloat32;
    if (options.half) {
      built->halves.emplace_back(count * data.d);
      CHECK(trawl::first_not_f16(data.row(first), count * data.d) == static_cast<size_t>(count * data.d));
      trawl::f32_to_f16_array(data.row(first), count * data.d, built->halves.back().data());
      bytes = built->halves.back().data();
      type = trawl::RowType::kFloat16;
    }
    std::shared_ptr<const trawl::Rows> rows;
    if (options.split_files) {
      const int64_t total = count * data.d * trawl::row_type_bytes(type);
      const int64_t cuts[4] = {0, total / 3 + (total > 7), total / 2 + (total > 7), total};
      std::vector<trawl::RowSegment> segments;
      for (int part = 0; part < 3; ++part) {
        std::vector<uint8_t> content(45, 0xFF);  // a header of odd length in front
        content.insert(content.end(), static_cast<const uint8_t*>(bytes) + cuts[part], static_cast<const uint8_t*>(bytes) + cuts[part + 1]);
        const std::string path = built->directory.file();
        write_file(path, content.data(), content.size());
        segments.push_back({path, 45, cuts[part + 1] - cuts[part]});
      }
      rows = std::make_shared<trawl::Rows>(segments, type, count, data.d);
    } else {
      rows = std::make_shared<trawl::Rows>(bytes, type, count, data.d);
    }
    if (codes && options.prefilter > 0 && options.prefilter <= data.d) {
      const std::string path = built->directory.file();
      trawl::PrefilterOptions prefilter_options;
      prefilter_options.components = options.prefilter;
      CHECK(trawl::make_prefilter(path, *codes, *rows, prefilter_options, pool).components == options.prefilter);
      prefilter = trawl::PrefilterFile::open(path);
    }
    built->index->add_shard(rows, codes, prefilter);
  }
  if (!options.live.empty()) built->index->set_live_rows(options.live);
  return built;
}

// The result of query q must equal the oracle's, bit for bit.
inline void check_same(const trawl::SearchResult& result, int64_t q, const Hits& expected, const char* file, int line) {
  std::ostringstream text;
  text.precision(17);
  if (result.counts[q] != static_cast<int64_t>(expected.size())) {
    text << "query " << q << ": " << result.counts[q] << " results, expected " << expected.size();
    check::fail(file, line, text.str());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double score = result.scores[q * result.k + i];
    const int64_t row = result.rows[q * result.k + i];
    if (row != expected[i].second || std::memcmp(&score, &expected[i].first, 8) != 0) {
      text << "query " << q << " rank " << i << ": row " << row << " with " << score << ", expected row " << expected[i].second << " with "
           << expected[i].first;
      check::fail(file, line, text.str());
    }
  }
}

// Searches all queries and compares each with the oracle. Returns the result, for its statistics.
inline trawl::SearchResult check_search(const trawl::Index& index, const Data& data, const Data& queries,
                                        const trawl::SearchOptions& options, trawl::ThreadPool& pool, const char* file, int line) {
  trawl::SearchResult result = trawl::search(index, queries.values.data(), queries.n, options, pool);
  for (int64_t q = 0; q < queries.n; ++q) {
    check_same(result, q, top_k(index.metric(), queries.row(q), data, options.k, options.filter_bits, index.live_bits()), file, line);
  }
  return result;
}
#define CHECK_SEARCH(index, data, queries, options, pool) oracle::check_search(index, data, queries, options, pool, __FILE__, __LINE__)

inline Data gaussian(int64_t n, int64_t d, uint32_t seed, float spread = 1, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, spread);
  Data data{n, d, std::vector<float>(n * d)};
  for (float& value : data.values) value = normal(random);
  return data;
}

// Unit vectors with a common component, as sentence encoders produce them.
inline Data encoder_like(int64_t n, int64_t d, uint32_t seed) {
  Data data = gaussian(n, d, seed, 1.0f);
  for (int64_t i = 0; i < n; ++i) {
    double square = 0;
    for (int64_t j = 0; j < d; ++j) {
      data.row(i)[j] += 1.5f * std::sin(static_cast<float>(j) * 1.3f) + (j % 97 == 5 ? 6.0f : 0.0f);
      square += static_cast<double>(data.row(i)[j]) * data.row(i)[j];
    }
    for (int64_t j = 0; j < d; ++j) data.row(i)[j] = static_cast<float>(data.row(i)[j] / std::sqrt(square));
  }
  return data;
}

constexpr Metric kMetrics[] = {Metric::kInnerProduct, Metric::kSquaredL2, Metric::kCosine};

}  // namespace oracle
