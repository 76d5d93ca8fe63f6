// The prefilter: its file, the choice of components, and searches, whose answers must not depend on it.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <string>

#include "dense/codes/codes_format.hpp"
#include "dense/codes/query_pack.hpp"
#include "dense/kernels/kernel_choice.hpp"
#include "oracle.hpp"

using namespace oracle;
using trawl::CodesFile;
using trawl::ErrorCode;
using trawl::PrefilterFile;
using trawl::SearchOptions;

namespace {

// Rows near a subspace of low rank, as encoders produce them.
Data low_rank(int64_t n, int64_t d, int64_t rank, float noise, uint32_t seed) {
  Data data = gaussian(n, d, seed, noise);
  const Data axes = gaussian(rank, d, 4711), weights = gaussian(n, rank, seed + 1);
  for (int64_t i = 0; i < n; ++i) {
    double square = 0;
    for (int64_t r = 0; r < rank; ++r) {
      for (int64_t j = 0; j < d; ++j) data.row(i)[j] += weights.row(i)[r] * axes.row(r)[j] / (1 + 0.1f * static_cast<float>(r));
    }
    for (int64_t j = 0; j < d; ++j) {
      data.row(i)[j] += std::sin(static_cast<float>(j));
      square += static_cast<double>(data.row(i)[j]) * data.row(i)[j];
    }
    for (int64_t j = 0; j < d; ++j) data.row(i)[j] = static_cast<float>(data.row(i)[j] / std::sqrt(square));
  }
  return data;
}

struct Made {
  TempDir directory;
  std::string codes_path = directory.file(), path = directory.file();
  std::shared_ptr<const CodesFile> codes;
  std::shared_ptr<const trawl::Rows> rows;
};

std::unique_ptr<Made> make(Metric metric, const Data& data, int64_t components, trawl::ThreadPool& pool, int64_t rows_per_block = 16) {
  auto made = std::make_unique<Made>();
  trawl::CodesWriterOptions options;
  options.rows_per_block = rows_per_block;
  trawl::CodesWriter writer(made->codes_path, metric, data.d, options);
  writer.append(data.values.data(), data.n, pool);
  writer.finish(pool);
  made->codes = CodesFile::open(made->codes_path);
  made->rows = std::make_shared<trawl::Rows>(data.values.data(), trawl::RowType::kFloat32, data.n, data.d);
  trawl::PrefilterOptions prefilter_options;
  prefilter_options.components = components;
  trawl::make_prefilter(made->path, *made->codes, *made->rows, prefilter_options, pool);
  return made;
}

// Options that use the prefilter for any number of rows.
SearchOptions eager() {
  SearchOptions options;
  options.prefilter.sample_rows = 1;
  options.prefilter.trial_share = options.prefilter.refined_share = 1;
  return options;
}

}  // namespace

TEST("prefilter: random shapes, metrics, shards, live rows, filters, threads and instruction sets agree with the oracle") {
  std::mt19937 random(8);
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  trawl::ThreadPool pool(2);
  int64_t refined = 0;
  for (int round = 0; round < (check::small() ? 8 : 90); ++round) {
    const Metric metric = kMetrics[random() % 3];
    const int64_t dimensions[] = {64, 65, 100, 128, 200, 256, 300, 384};
    const int64_t d = dimensions[random() % 8], n = pick(0, check::small() ? 200 : 900);
    const auto data_of = [&](int64_t count, uint32_t seed) {
      return round % 3 == 0   ? gaussian(count, d, seed)
             : round % 3 == 1 ? encoder_like(count, d, seed)
                              : low_rank(count, d, 20, 0.05f, seed);
    };
    const Data data = data_of(n, round);
    const int64_t count = pick(1, 70);
    Data queries = data_of(count, 1000 + round);
    if (n > 0) std::copy(data.row(0), data.row(0) + d, queries.row(0));
    BuildOptions build_options;
    build_options.shards = static_cast<int>(pick(1, 4));
    build_options.rows_per_block = 16 * pick(1, 6);
    build_options.prefilter = 64 * pick(1, d / 64);
    if (random() % 2) build_options.live = random_bits(n, random);
    const auto built = build(metric, data, pool, build_options);
    const std::vector<uint64_t> filter = random_bits(n, random);
    pool.set_threads(static_cast<int>(pick(1, 4)));
    for (const trawl::IsaStatus& isa : trawl::list_isas()) {
      if (!isa.available) continue;
      SearchOptions options = eager();
      // In some rounds queries switch to the codes, after the trial or between blocks.
      const double shares[] = {0, 0.01, 0.2, 1};
      options.prefilter.trial_share = shares[random() % 4];
      options.prefilter.refined_share = shares[random() % 4];
      options.k = random() % 2 ? pick(1, 20) : pick(1, n + 5);
      options.kernels = &trawl::choose_kernels(isa.name);
      options.candidate_capacity = random() % 3 == 0 ? 1 : 1024;
      options.candidate_limit = random() % 4 == 0 ? 1 : 65536;
      options.batch_queries = pick(1, 70);
      if (random() % 3 == 0) options.filter_bits = filter.data();
      const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
      for (const trawl::QueryStats& stats : result.stats) refined += stats.refined;
    }
  }
  CHECK(refined > 0 || check::small());  // with few rows, possibly none is deferred
}

TEST("prefilter: of rows near a subspace of low rank, few are refined and fewer are scored") {
  trawl::ThreadPool pool(2);
  const Data data = low_rank(check::small() ? 2000 : 20000, 256, 30, 0.02f, 1), queries = low_rank(40, 256, 30, 0.02f, 2);
  for (const Metric metric : kMetrics) {
    BuildOptions build_options;
    build_options.rows_per_block = 64;
    build_options.prefilter = 64;
    const auto built = build(metric, data, pool, build_options);
    SearchOptions options = eager();
    const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
    for (const trawl::QueryStats& stats : result.stats) {
      CHECK(!stats.full_scan && stats.refined < data.n / 10 && stats.rescored < 250);
    }
    CHECK(built->index->resident_bytes() < built->index->touched_bytes() / 2);
    options.prefilter.use = false;
    const auto without = CHECK_SEARCH(*built->index, data, queries, options, pool);
    CHECK(without.rows == result.rows && std::memcmp(without.scores.data(), result.scores.data(), 8 * result.scores.size()) == 0);
    for (const trawl::QueryStats& stats : without.stats) CHECK_EQUAL(stats.refined, 0);
  }
}

TEST("prefilter: a query defers no more rows than the limit, and refines those beyond it at once") {
  trawl::ThreadPool pool(3);
  const int64_t n = 6400, d = 128;
  Data data = gaussian(n, d, 5);
  Data queries = gaussian(20, d, 6);
  std::fill(queries.row(0), queries.row(1), 0.0f);  // keeps every row, so that it switches to the codes after the trial
  // The first round defers few of them, so that no query switches to the codes before the last round, which defers thousands.
  for (int64_t i = 0; i < n / 3 * d; ++i) data.values[i] *= 0.01f;
  BuildOptions build_options;
  build_options.rows_per_block = 16;
  build_options.prefilter = 64;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  SearchOptions options = eager();
  options.prefilter.sample_rows = n / 4;
  options.prefilter.trial_share = 0.99;
  options.prefilter.refined_share = 0.01;
  const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
  for (int64_t q = 0; q < queries.n; ++q) {
    const int64_t refined = result.stats[q].refined;
    CHECK(q == 0 ? refined == 0 : refined > 500 && refined <= 1024 + 2 * n / 100);
  }
}

TEST("prefilter: a lone query that keeps more rows than it may defer switches to the codes") {
  trawl::ThreadPool pool(2);
  const int64_t n = 20000, d = 256;
  const Data data = gaussian(n, d, 5);
  Data queries = gaussian(20, d, 6);
  // Of all but one query the sample has the best row, far before the next, so that the prefilter keeps few rows.
  for (int64_t q = 1; q < queries.n; ++q) std::copy(data.row(q), data.row(q) + d, queries.row(q));
  BuildOptions build_options;
  build_options.rows_per_block = 64;
  build_options.prefilter = 64;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  static std::atomic<int64_t> refined;
  refined = 0;
  trawl::Kernels kernels = *trawl::kSerialKernels;
  kernels.dot_codes = [](const double* values, const int8_t* codes, int64_t padded) {
    ++refined;
    return trawl::kSerialKernels->dot_codes(values, codes, padded);
  };
  const trawl::KernelChoice choice = {&kernels, &kernels, trawl::kNever, trawl::kNever};
  SearchOptions options = eager();
  options.k = 1;
  options.kernels = &choice;
  options.prefilter.refined_share = 0.005;  // 16 times as many for one query, which is more than the 1024 + 2 * 100 that may be deferred
  CHECK_SEARCH(*built->index, data, queries, options, pool);
  CHECK(refined > 16 * n / 200 && refined < n / 4);  // not one by one
}

TEST("prefilter: of many queries, few pairs pass the test with coarser digits, and fewer the second one") {
  trawl::ThreadPool pool(2);
  const int64_t n = 20000, d = 256;
  const Data data = low_rank(n, d, 30, 0.02f, 1), queries = low_rank(32, d, 30, 0.02f, 2);
  static std::atomic<int64_t> tested_again, refined;
  trawl::Kernels coarser = *trawl::kSerialKernels;
  coarser.group_digits = 32;
  coarser.dot_digits = [](const int8_t* row_order, const int8_t* codes, int64_t padded) {
    ++tested_again;
    int32_t sum = 0;
    for (int64_t j = 0; j < padded; ++j) sum += row_order[j] * codes[j];
    return sum;
  };
  coarser.dot_codes = [](const double* values, const int8_t* codes, int64_t padded) {
    ++refined;
    return trawl::kSerialKernels->dot_codes(values, codes, padded);
  };
  const trawl::KernelChoice choice = {&coarser, &coarser, trawl::kNever, trawl::kNever};
  for (const int64_t components : {0, 64}) {
    tested_again = refined = 0;
    BuildOptions build_options;
    build_options.rows_per_block = 64;
    build_options.prefilter = components;
    const auto built = build(Metric::kInnerProduct, data, pool, build_options);
    SearchOptions options = eager();
    options.k = 10;
    options.kernels = &choice;
    CHECK_SEARCH(*built->index, data, queries, options, pool);
    CHECK(tested_again > 0 && tested_again < n * queries.n / 20);
    CHECK(refined > 0 && refined < tested_again);
  }
}

namespace {

// The numbers of the rows of an index, for the row test, by the rows' codes.
struct TestedRow {
  float scale, residual, norm, bias;
  int32_t code_sum;
};
std::map<std::string, TestedRow> tested_rows;
std::atomic<int64_t> tested, tested_wrongly;

void check_numbers(const trawl::CodeRows& rows) {
  for (int i = 0; i < rows.rows; ++i) {
    const auto found = tested_rows.find(std::string(reinterpret_cast<const char*>(rows.codes_i8) + i * rows.padded, rows.padded));
    ++tested;
    const bool right = found != tested_rows.end() && rows.scale_f32[i] == found->second.scale &&
                       rows.residual_f32[i] == found->second.residual && rows.test_norm_f32[i] == found->second.norm &&
                       rows.bias_f32[i] == found->second.bias && rows.code_sum_i32[i] == found->second.code_sum;
    if (!right) ++tested_wrongly;
  }
}

}  // namespace

TEST("prefilter: every row is tested with its own numbers, as it lies in a block, gathered for a filter or deferred") {
  trawl::ThreadPool pool(2);
  const int64_t n = 2000, d = 128;
  Data data = gaussian(n, d, 1, 1, 0.5f);
  for (int64_t i = 0; i < n * d; ++i) data.values[i] *= static_cast<float>(1 + i / d % 7);
  const Data queries = gaussian(20, d, 2, 1, 0.5f);  // sixteen side by side, and four more
  std::mt19937 random(3);
  std::vector<uint64_t> few = random_bits(n, random);
  for (uint64_t& word : few) word &= random() & random();
  trawl::Kernels kernels = *trawl::kSerialKernels;
  kernels.scan_groups = [](const trawl::CodeRows& rows, const int8_t* digits, int groups, const trawl::QueryTest& test, trawl::Hit* hits) {
    check_numbers(rows);
    return trawl::kSerialKernels->scan_groups(rows, digits, groups, test, hits);
  };
  kernels.scan_rows = [](const trawl::CodeRows& rows, const int8_t* digits, int count, const trawl::QueryTest& test, trawl::Hit* hits) {
    check_numbers(rows);
    return trawl::kSerialKernels->scan_rows(rows, digits, count, test, hits);
  };
  const trawl::KernelChoice choice = {&kernels, &kernels, trawl::kNever, trawl::kNever};
  for (const Metric metric : kMetrics) {
    BuildOptions build_options;
    build_options.rows_per_block = 64;
    build_options.prefilter = 64;
    const auto built = build(metric, data, pool, build_options);
    const trawl::Shard& shard = built->index->shards()[0];
    tested_rows.clear();
    for (int64_t b = 0; b < shard.codes->blocks(); ++b) {
      const trawl::CodesBlock codes = shard.codes->block(b);
      const trawl::PrefilterBlock shorter = shard.prefilter->block(b);
      std::vector<float> bias(codes.rows);
      trawl::row_test_biases(metric, codes.bias_f64, codes.norm_f32, codes.rows, trawl::PackMean(metric, *shard.codes).kappa, bias.data());
      const auto key = [](const int8_t* block, int64_t i, int64_t length) {
        return std::string(reinterpret_cast<const char*>(block) + i * length, length);
      };
      for (int64_t i = 0; i < codes.rows; ++i) {
        tested_rows[key(codes.codes_i8, i, d)] = {codes.scale_f32[i], codes.residual_f32[i], codes.norm_f32[i], bias[i],
                                                  codes.code_sum_i32[i]};
        tested_rows[key(shorter.codes_i8, i, 64)] = {shorter.scale_f32[i], shorter.residual_f32[i], shorter.size_f32[i],
                                                     shorter.bias_f32[i], shorter.code_sum_i32[i]};
      }
    }
    CHECK_EQUAL(tested_rows.size(), static_cast<size_t>(2 * n));
    for (const bool prefilter : {false, true}) {
      for (const uint64_t* filter : {static_cast<const uint64_t*>(nullptr), static_cast<const uint64_t*>(few.data())}) {
        tested = tested_wrongly = 0;
        SearchOptions options = eager();
        options.prefilter.use = prefilter;
        options.filter_bits = filter;
        options.kernels = &choice;
        const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
        CHECK_EQUAL(tested_wrongly.load(), 0);
        int64_t deferred = 0;
        for (const trawl::QueryStats& stats : result.stats) deferred += stats.refined;
        CHECK(tested > 0 && (deferred > 0) == prefilter);
      }
    }
  }
}

TEST("prefilter: rows of growing norm, extreme rows, duplicates, ternary rows and equal rows") {
  trawl::ThreadPool pool(2);
  std::vector<Data> sets;
  sets.push_back(gaussian(300, 64, 1));
  for (int64_t i = 0; i < 300; ++i) {
    for (int64_t j = 0; j < 64; ++j) sets[0].row(i)[j] *= static_cast<float>(i) * 0.01f;  // the best rows come last
  }
  sets.push_back(gaussian(300, 70, 2));
  for (int64_t j = 0; j < 70; ++j) {
    sets[1].row(3)[j] = sets[1].row(250)[j] = j % 2 ? 3e38f : -3e38f;
    sets[1].row(4)[j] = 0;
    sets[1].row(5)[j] *= 1e-40f;
    sets[1].row(6)[j] *= 1e25f;
  }
  sets.push_back(gaussian(300, 128, 3));
  for (int64_t i = 7; i < 300; ++i) std::copy(sets[2].row(i % 7), sets[2].row(i % 7) + 128, sets[2].row(i));
  sets.push_back(gaussian(300, 128, 4));
  for (float& value : sets[3].values) value = static_cast<float>(static_cast<int>(value * 2) % 2);
  sets.push_back(gaussian(300, 96, 5));
  for (float& value : sets[4].values) value = 1;
  for (const Data& data : sets) {
    for (const Metric metric : kMetrics) {
      if (&data == &sets[1] && metric == Metric::kSquaredL2) continue;  // distances of the largest floats do not fit
      for (const int64_t k : {int64_t{1}, int64_t{10}, int64_t{60}}) {
        BuildOptions build_options;
        build_options.prefilter = 64;
        const auto built = build(metric, data, pool, build_options);
        SearchOptions options = eager();
        options.k = k;
        Data queries = gaussian(6, data.d, 6, 1e-3f);
        std::copy(data.row(8), data.row(8) + data.d, queries.row(1));
        std::fill(queries.row(2), queries.row(2) + data.d, 0.0f);
        CHECK_SEARCH(*built->index, data, queries, options, pool);
      }
    }
  }
}

TEST("prefilter: the bytes do not depend on threads or instruction set, and files of all shapes can be read") {
  trawl::ThreadPool one(1), four(4);
  for (const Metric metric : kMetrics) {
    const Data data = low_rank(500, 200, 40, 0.1f, 3);
    const auto a = make(metric, data, 128, one, 32), b = make(metric, data, 128, four, 32);
    CHECK(read_file(a->path) == read_file(b->path));
    const auto prefilter = PrefilterFile::open(a->path);
    CHECK_EQUAL(prefilter->rows(), 500);
    CHECK_EQUAL(prefilter->components(), 128);
    CHECK_EQUAL(prefilter->blocks(), 16);
    CHECK(prefilter->orthogonality_error() > 0 && prefilter->orthogonality_error() < 1e-4);
    for (int64_t block = 0; block < 16; ++block) CHECK(prefilter->block_checksum_holds(block));
    CHECK_EQUAL(trawl::verify_prefilter(*prefilter, *a->codes, *a->rows, four).reason, std::string());
  }
  for (const int64_t n : {0, 1, 17}) {
    const auto made = make(Metric::kInnerProduct, gaussian(n, 64, 4), 64, one);
    CHECK_EQUAL(PrefilterFile::open(made->path)->rows(), n);
  }
}

TEST("prefilter: a file is written only if it is worthwhile, and the result has the reason") {
  trawl::ThreadPool pool(2);
  const auto choose = [&](const Data& data, const char* reason) {
    const auto made = make(Metric::kInnerProduct, data, 64, pool, 1024);
    const std::string path = made->directory.file();
    const trawl::PrefilterResult result = trawl::make_prefilter(path, *made->codes, *made->rows, {}, pool);
    if (result.reason.find(reason) == std::string::npos) check::fail(__FILE__, __LINE__, result.reason);
    CHECK_EQUAL(::access(path.c_str(), F_OK) == 0, result.components > 0);
    return result.components;
  };
  CHECK_EQUAL(choose(gaussian(2000, 256, 1), "too few"), 0);
  CHECK_EQUAL(choose(gaussian(2000, 100, 1), "as short as a prefilter"), 0);
  if (check::small()) return;
  CHECK_EQUAL(choose(gaussian(20000, 256, 1), "principal components would keep"), 0);
  const int64_t chosen = choose(low_rank(20000, 256, 30, 0.02f, 1), "principal components would keep");
  CHECK(chosen == 64 || chosen == 128);
}

TEST("prefilter: a truncated file, or damage in header, components or footer, is refused with a reason") {
  trawl::ThreadPool pool(1);
  const auto made = make(Metric::kSquaredL2, gaussian(40, 64, 3), 64, pool);
  const auto bytes = read_file(made->path);
  const std::string damaged = made->directory.file();
  for (size_t length = 0; length < bytes.size(); length += length < 200 ? 7 : 331) {
    write_file(damaged, bytes.data(), length);
    CHECK_REFUSED(PrefilterFile::open(damaged), ErrorCode::kBadFile, damaged);
  }
  const auto refuse = [&](size_t at) {
    auto copy = bytes;
    copy[at] ^= 0x41;
    write_file(damaged, copy.data(), copy.size());
    CHECK_REFUSED(PrefilterFile::open(damaged), ErrorCode::kBadFile, damaged);
  };
  for (size_t at = 0; at < sizeof(trawl::PrefilterHeader) + 64; ++at) refuse(at);
  for (size_t at = 0; at < 32; ++at) refuse(bytes.size() - sizeof(trawl::CodesFooter) + at);
  CHECK_REFUSED(PrefilterFile::open(made->codes_path), ErrorCode::kBadFile, "wrong magic");
  auto newer = bytes;
  newer[offsetof(trawl::PrefilterHeader, version)] = 9;
  write_file(damaged, newer.data(), newer.size());
  CHECK_REFUSED(PrefilterFile::open(damaged), ErrorCode::kBadFile, "version 9, but this program reads version 1");
}

TEST("verify: verification names the row and the reason for each number of a prefilter that is too small") {
  trawl::ThreadPool pool(2);
  for (const Metric metric : kMetrics) {
    Data data = low_rank(50, 100, 20, 0.1f, 5);
    for (int64_t j = 0; j < 100; ++j) data.row(20)[j] = 1e30f;
    const auto made = make(metric, data, 64, pool);
    const std::string damaged = made->directory.file();
    CHECK_EQUAL(trawl::verify_prefilter(*PrefilterFile::open(made->path), *made->codes, *made->rows, pool).reason, std::string());
    const auto bytes = read_file(made->path);
    const trawl::PrefilterBlockLayout layout(16, 64);
    const int64_t header = (96 + 4 * 64 * 100 + 4095) / 4096 * 4096, row17 = header + layout.bytes;
    const auto expect = [&](int64_t at, size_t size, const void* value, int64_t row, const char* reason) {
      auto copy = bytes;
      std::memcpy(copy.data() + at, value, size);
      write_file(damaged, copy.data(), copy.size());
      const auto result = trawl::verify_prefilter(*PrefilterFile::open(damaged), *made->codes, *made->rows, pool);
      CHECK_EQUAL(result.bad_row, row);
      if (result.reason.find(reason) == std::string::npos) check::fail(__FILE__, __LINE__, result.reason);
    };
    const auto lowered = [&](int64_t at) {
      float value;
      std::memcpy(&value, bytes.data() + at, 4);
      return std::nextafter(value, 0.0f);
    };
    const float residual = lowered(row17 + layout.residual + 4), size = lowered(row17 + layout.size + 4), negative = -1, bias = 1e-9f;
    const float no_number = std::numeric_limits<float>::quiet_NaN();
    expect(row17 + layout.residual + 4, 4, &residual, 17, "residual bound");
    expect(row17 + layout.residual + 4, 4, &no_number, 17, "residual bound");
    expect(row17 + layout.size + 4, 4, &size, 17, "size bound");
    expect(row17 + layout.scale + 4, 4, &negative, 17, "scale");
    expect(row17 + layout.bias + 4, 4, &bias, 17, "bias");
    const int32_t sum = 123456;
    expect(row17 + layout.code_sum + 4, 4, &sum, 17, "code sum");
    const int8_t lowest = -128;
    expect(row17 + 64 + 3, 1, &lowest, 17, "code -128");
    const float padding = 1;
    expect(header + 3 * layout.bytes + layout.residual + 4 * 9, 4, &padding, 48, "checksum of block 3");
    if (metric != Metric::kCosine) expect(row17 + layout.residual + 4 * 4, 4, &padding, 20, "infinite");
    Data other = data;
    other.row(31)[5] += 0.25f;
    const trawl::Rows changed(other.values.data(), trawl::RowType::kFloat32, 50, 100);
    CHECK_EQUAL(trawl::verify_prefilter(*PrefilterFile::open(made->path), *made->codes, changed, pool).bad_row, 31);
  }
}

TEST("prefilter: the prefilter of codes that differ in one row is refused, whichever block has the row") {
  trawl::ThreadPool pool(2);
  const int64_t blocks = 100;
  Data data = gaussian(16 * blocks, 64, 21);
  const auto made = make(Metric::kInnerProduct, data, 64, pool);
  const auto prefilter = PrefilterFile::open(made->path);
  for (int64_t block = 1; block < blocks; block += 7) {
    Data other = data;
    other.row(16 * block + 3)[5] += 50;
    const auto changed = make(Metric::kInnerProduct, other, 64, pool);
    trawl::Index index(Metric::kInnerProduct, 64);
    CHECK_REFUSED(index.add_shard(changed->rows, changed->codes, prefilter), ErrorCode::kBadFile, "`trawl optimize`");
    CHECK_REFUSED(trawl::verify_prefilter(*prefilter, *changed->codes, *changed->rows, pool), ErrorCode::kBadFile, "other codes");
  }
}

TEST("prefilter: codes of version 1 are searched with their prefilter, and the index counts such shards") {
  trawl::ThreadPool pool(2);
  const Data data = gaussian(400, 64, 22), queries = gaussian(5, 64, 23);
  const auto made = make(Metric::kInnerProduct, data, 64, pool);
  auto bytes = read_file(made->codes_path);
  trawl::CodesHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.version = 1;
  header.checksum = trawl::codes_header_checksum(header, made->codes->mean());
  std::memcpy(bytes.data(), &header, sizeof header);
  const trawl::CodesFooter footer = trawl::make_codes_footer(400, made->codes->blocks());
  std::memcpy(bytes.data() + bytes.size() - sizeof footer, &footer, sizeof footer);
  const std::string codes_path = made->directory.file(), path = made->directory.file();
  write_file(codes_path, bytes.data(), bytes.size());
  const auto codes = CodesFile::open(codes_path);
  CHECK(!codes->has_full_identity() && codes->identity() != made->codes->identity());
  CHECK_EQUAL(trawl::verify_codes(*codes, *made->rows, pool).reason, std::string());
  trawl::PrefilterOptions options;
  options.components = 64;
  trawl::make_prefilter(path, *codes, *made->rows, options, pool);
  trawl::Index index(Metric::kInnerProduct, 64), current(Metric::kInnerProduct, 64);
  CHECK_REFUSED(index.add_shard(made->rows, codes, PrefilterFile::open(made->path)), ErrorCode::kBadFile, "other codes");
  index.add_shard(made->rows, codes, PrefilterFile::open(path));
  CHECK_EQUAL(index.sampled_prefilters(), 1);
  CHECK_SEARCH(index, data, queries, eager(), pool);
  current.add_shard(made->rows, made->codes, PrefilterFile::open(made->path));
  CHECK_EQUAL(current.sampled_prefilters(), 0);
}

TEST("prefilter: an index and verification refuse the prefilter of other codes, and bad arguments leave no file") {
  trawl::ThreadPool pool(1);
  const Data one = gaussian(40, 64, 1), two = gaussian(40, 64, 2);
  const auto a = make(Metric::kInnerProduct, one, 64, pool), b = make(Metric::kInnerProduct, two, 64, pool);
  const auto prefilter = PrefilterFile::open(a->path);
  trawl::Index index(Metric::kInnerProduct, 64);
  CHECK_REFUSED(index.add_shard(b->rows, b->codes, prefilter), ErrorCode::kBadFile, "other codes");
  CHECK_REFUSED(index.add_shard(a->rows, nullptr, prefilter), ErrorCode::kBadFile, "no codes");
  CHECK_REFUSED(trawl::verify_prefilter(*prefilter, *b->codes, *b->rows, pool), ErrorCode::kBadFile, "other codes");
  index.add_shard(a->rows, a->codes, prefilter);
  CHECK_EQUAL(index.resident_bytes(), prefilter->bytes());
  CHECK_EQUAL(index.touched_bytes(), a->codes->bytes());
  const std::string path = a->directory.file();
  for (const int64_t components : {32, 100, 128, 2048}) {
    trawl::PrefilterOptions options;
    options.components = components;
    CHECK_REFUSED(trawl::make_prefilter(path, *a->codes, *a->rows, options, pool), ErrorCode::kBadArgument, "components are not");
  }
  std::atomic<bool> cancel{true};
  trawl::PrefilterOptions options;
  options.components = 64;
  CHECK_REFUSED(trawl::make_prefilter(path, *a->codes, *a->rows, options, pool, &cancel), ErrorCode::kCancelled, "cancelled");
  CHECK(::access(path.c_str(), F_OK) != 0);
  CHECK_REFUSED(trawl::make_prefilter("/nonexistent/x", *a->codes, *a->rows, options, pool), ErrorCode::kWriteFailed, "cannot create");
}
