// The table of cases in docs/certificate.md. Each case is tested with whole searches.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>

#include "base/float_environment.hpp"
#include "oracle.hpp"
#include "trawl/sizes.hpp"

using namespace oracle;
using trawl::SearchOptions;

namespace {

const float kLargest = std::numeric_limits<float>::max();

// As many rows, the given ones again and again.
Data repeated(const Data& rows, int64_t count) {
  Data many{count, rows.d, {}};
  for (int64_t i = 0; i < count; ++i) many.values.insert(many.values.end(), rows.row(i % rows.n), rows.row(i % rows.n) + rows.d);
  return many;
}

// Searches with all metrics, k in {1, 10, n, n+5}, a large candidate buffer and one of size 1, and three means: zero, the mean of
// the rows, and a row. The scores of `data` must fit float32, because searches refuse larger ones.
void check_all(const Data& data, const Data& queries,
               std::initializer_list<Metric> metrics = {Metric::kInnerProduct, Metric::kSquaredL2, Metric::kCosine}) {
  trawl::ThreadPool pool(2);
  for (const Metric metric : metrics) {
    for (int mean = 0; mean < 3; ++mean) {
      BuildOptions build_options;
      build_options.shards = 1 + mean;
      if (mean == 1) build_options.mean.assign(data.d, 0.0f);
      if (mean == 2) build_options.mean.assign(data.row(data.n / 2), data.row(data.n / 2) + data.d);
      const auto built = build(metric, data, pool, build_options);
      for (const int64_t k : {int64_t{1}, int64_t{10}, data.n, data.n + 5}) {
        for (const int64_t capacity : {1024, 1}) {
          SearchOptions options;
          options.k = std::max<int64_t>(k, 1);
          options.candidate_capacity = options.candidate_limit = capacity;
          if (capacity > 1) options.candidate_limit = 65536;
          CHECK_SEARCH(*built->index, data, queries, options, pool);
        }
      }
      // The queries as a group, which AVX2 scans with coarser digits.
      const Data group = repeated(queries, 17);
      for (const trawl::IsaStatus& isa : trawl::list_isas()) {
        if (!isa.available) continue;
        SearchOptions options;
        options.k = std::min<int64_t>(10, data.n);
        options.kernels = &trawl::choose_kernels(isa.name);
        CHECK_SEARCH(*built->index, data, group, options, pool);
      }
    }
  }
}

template <typename Value>
Data make(int64_t n, int64_t d, Value value) {
  std::mt19937 random(static_cast<uint32_t>(n * 31 + d));
  Data data{n, d, std::vector<float>(n * d)};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < d; ++j) data.row(i)[j] = value(i, j, random);
  }
  return data;
}

float normal(std::mt19937& random) { return std::normal_distribution<float>()(random); }

Data first_rows(const Data& data, int64_t count) {
  return {count, data.d, std::vector<float>(data.values.begin(), data.values.begin() + count * data.d)};
}

}  // namespace

TEST("cases: of duplicate rows the lower ones come first, and the codes keep every row equal to the k-th") {
  const Data base = gaussian(7, 40, 1);
  check_all(make(120, 40, [&](auto i, auto j, auto&) { return base.row(i * 5 % 7)[j]; }), first_rows(base, 7));
}

TEST("cases: ternary vectors, many of which have equal scores") {
  const auto ternary = [](auto, auto, auto& r) { return static_cast<float>(static_cast<int>(r() % 3) - 1); };
  check_all(make(200, 16, ternary), make(9, 16, ternary));
}

TEST("cases: all rows equal, rows constant over the columns, rows equal to the mean") {
  const Data queries = gaussian(5, 70, 2);
  check_all(make(90, 70, [](auto, auto j, auto&) { return std::sin(static_cast<float>(j)); }), queries);
  check_all(make(90, 70, [](auto i, auto, auto&) { return static_cast<float>(i % 11) - 5; }), queries);
}

TEST("cases: zero rows, zero query, query along the mean, one-hot query, query opposite to a row") {
  Data data = encoder_like(100, 65, 3);
  for (int64_t j = 0; j < 65; ++j) data.row(4)[j] = data.row(60)[j] = 0;
  Data queries{5, 65, std::vector<float>(5 * 65, 0.0f)};
  for (int64_t j = 0; j < 65; ++j) {
    queries.row(1)[j] = data.row(50)[j] * 3;  // row 50 is one of check_all's means
    queries.row(2)[j] = j == 7 ? 1.0f : 0.0f;
    queries.row(3)[j] = -data.row(9)[j];
    queries.row(4)[j] = data.row(9)[j];
  }
  check_all(data, queries);
  check_all(make(50, 20, [](auto, auto, auto&) { return 0.0f; }), gaussian(3, 20, 4));
}

TEST("cases: one outlier dimension, an outlier mean, a spread of 1e-7 of the mean, one ulp about 1") {
  const Data queries = gaussian(4, 128, 5);
  check_all(make(100, 128, [](auto, auto j, auto& r) { return normal(r) * (j == 9 ? 1e4f : 1.0f); }), queries);
  check_all(make(100, 128, [](auto, auto j, auto& r) { return normal(r) + (j == 9 ? 1e5f : 0.0f); }), queries);
  check_all(make(100, 128, [](auto, auto j, auto& r) { return std::cos(static_cast<float>(j)) * (1 + 1e-7f * normal(r)); }), queries);
  check_all(make(100, 128, [](auto, auto, auto& r) { return 1 + static_cast<float>(static_cast<int>(r() % 3) - 1) * 0x1p-23f; }), queries);
}

TEST("cases: norms from 1e-30 to 1e30, mixed and each alone, coordinates from 2^-60 to 2^60, denormals") {
  const Data mixed = make(90, 50, [](auto i, auto, auto& r) { return normal(r) * std::pow(10.0f, static_cast<float>(i % 13) * 5 - 30); });
  const Data small = gaussian(4, 50, 6, 1e-3f);
  check_all(mixed, small, {Metric::kInnerProduct, Metric::kCosine});
  check_all(make(90, 50, [](auto, auto, auto& r) { return std::ldexp(normal(r), static_cast<int>(r() % 121) - 60); }), small);
  const Data denormal = make(60, 50, [](auto, auto, auto& r) { return 0x1p-149f * static_cast<float>(r() % 64); });
  check_all(denormal, first_rows(denormal, 4));
  check_all(denormal, small);
  for (const float scale : {1e-43f, 1e-37f, 1e-20f, 1e17f}) {
    const Data data = gaussian(70, 50, 7, scale);
    check_all(data, first_rows(data, 4));
  }
  const Data coordinates = make(60, 50, [](auto, auto, auto& r) { return std::ldexp(normal(r), static_cast<int>(r() % 241) - 120); });
  check_all(coordinates, gaussian(4, 50, 8), {Metric::kInnerProduct, Metric::kCosine});
}

TEST("cases: rows of the largest floats are always rescored and do not change the results of other rows") {
  Data data = gaussian(80, 40, 9);
  for (int64_t j = 0; j < 40; ++j) {
    data.row(3)[j] = kLargest;
    data.row(70)[j] = j % 2 ? kLargest : -kLargest;
  }
  check_all(data, gaussian(4, 40, 10, 1e-3f), {Metric::kInnerProduct, Metric::kCosine});
  Data far = gaussian(4, 40, 11);
  check_all(data, far, {Metric::kCosine});
}

TEST("cases: dimensions 1, 2, 3, 63, 64, 65, 768, 4096 and row counts 0, 1, 15, 16, 17") {
  for (const int64_t d : {1, 2, 3, 63, 64, 65, 768, 4096}) {
    if (check::small() && d > 100) continue;
    for (const int64_t n : {1, 15, 16, 17}) check_all(encoder_like(n, d, static_cast<uint32_t>(n)), gaussian(3, d, 12));
  }
  trawl::ThreadPool pool(2);
  for (const Metric metric : kMetrics) {
    const Data none{0, 5, {}};
    const auto built = build(metric, none, pool);
    const Data queries = gaussian(2, 5, 13);
    SearchOptions options;
    CHECK_SEARCH(*built->index, none, queries, options, pool);
    const trawl::Index without_shards(metric, 5);
    CHECK_EQUAL(trawl::search(without_shards, queries.row(0), 2, options, pool).counts[1], 0);
    CHECK_EQUAL(trawl::search(*built->index, nullptr, 0, options, pool).queries, 0);
  }
}

TEST("cases: a k beyond the rows takes the memory of the rows, and a result of too many hits is refused") {
  trawl::ThreadPool pool(2);
  const Data data = gaussian(3, 8, 22), queries = gaussian(2, 8, 23);
  const auto built = build(Metric::kInnerProduct, data, pool);
  SearchOptions options;
  options.k = int64_t{1} << 52;
  const auto found = CHECK_SEARCH(*built->index, data, queries, options, pool);
  CHECK_EQUAL(found.rows.size(), 6u);
  CHECK_EQUAL(trawl::hit_places(4096, (int64_t{1} << 52) + 1, 65536), 65536);
  CHECK_REFUSED(trawl::hit_places(4097, int64_t{1} << 52, 65536), trawl::ErrorCode::kBadArgument, "4097 x 65536");
  CHECK_REFUSED(trawl::checked_product(int64_t{1} << 40, int64_t{1} << 40, INT64_MAX, "values"), trawl::ErrorCode::kBadArgument, "values");
}

TEST("cases: k of 2048 and more") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(check::small() ? 1200 : 9000, 64, 14), queries = encoder_like(6, 64, 15);
  for (const Metric metric : kMetrics) {
    BuildOptions build_options;
    build_options.rows_per_block = 256;
    build_options.shards = 2;
    const auto built = build(metric, data, pool, build_options);
    SearchOptions options;
    for (const int64_t k : {2048, 5000}) {
      options.k = k;
      CHECK_SEARCH(*built->index, data, queries, options, pool);
    }
  }
}

TEST("cases: 30,000 equal rows overflow the candidate buffer, so all rows are scored, and the lower rows come first") {
  trawl::ThreadPool pool(2);
  const int64_t n = check::small() ? 3000 : 30000;
  const Data data = make(n, 24, [](auto, auto j, auto&) { return static_cast<float>(j) * 0.1f - 1; });
  const Data queries = gaussian(3, 24, 16);
  const auto built = build(Metric::kInnerProduct, data, pool);
  SearchOptions options;
  options.candidate_limit = 1000;
  const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
  CHECK(result.stats[0].full_scan);
  options.candidate_capacity = 16;
  options.candidate_limit = 65536;
  const auto roomy = CHECK_SEARCH(*built->index, data, queries, options, pool);
  CHECK(!roomy.stats[0].full_scan && roomy.stats[0].buffer_growths > 3);
}

TEST("cases: for k above 65,536 the codes are scanned, and no row a second time") {
  if (check::small()) return;
  trawl::ThreadPool pool(2);
  const int64_t n = 270000, d = 16, k = 66000;
  const Data data = gaussian(n, d, 24), queries = gaussian(1, d, 25);
  const auto built = build(Metric::kInnerProduct, data, pool);
  SearchOptions options;
  options.k = k;
  const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
  CHECK(!result.stats[0].full_scan);
  CHECK(result.stats[0].rescored < n / 2);
}

#if defined(__linux__)
// The flags of the mapping that contains the path, in /proc/self/smaps: "sr" is advice to read ahead, "rr" not to.
static std::string flags_of_mapping(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find(path) != std::string::npos) inside = true;
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST("cases: after a verification that was cancelled and a search that failed, the rows are read one by one again") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const Data data = gaussian(4000, 16, 26);
  const std::string path = directory.file(), codes_path = directory.file();
  write_file(path, data.values.data(), 4 * data.values.size());
  const auto rows =
      std::make_shared<trawl::Rows>(std::vector<trawl::RowSegment>{{path, 0, 4 * 16 * 4000}}, trawl::RowType::kFloat32, 4000, 16);
  if (flags_of_mapping(path).find(" rr ") == std::string::npos) return;  // this system does not show the advice
  trawl::Index index(Metric::kInnerProduct, 16);
  index.add_shard(rows, nullptr);
  std::atomic<bool> cancel{true};
  SearchOptions options;
  {
    const trawl::SequentialReading reading(*rows);
    CHECK(flags_of_mapping(path).find(" sr ") != std::string::npos);
  }
  trawl::CodesWriter writer(codes_path, Metric::kInnerProduct, 16);
  writer.append(data.row(0), 4000, pool);
  writer.finish(pool);
  const auto codes = trawl::CodesFile::open(codes_path);
  CHECK_REFUSED(trawl::verify_codes(*codes, *rows, pool, &cancel), trawl::ErrorCode::kCancelled, "cancelled");
  CHECK(flags_of_mapping(path).find(" rr ") != std::string::npos);
  Data broken = data;
  broken.row(3999)[5] = std::numeric_limits<float>::quiet_NaN();
  write_file(path, broken.values.data(), 4 * broken.values.size());
  CHECK_REFUSED(trawl::search(index, data.row(0), 1, options, pool), trawl::ErrorCode::kNotFinite, "row 3999");
  CHECK(flags_of_mapping(path).find(" rr ") != std::string::npos);
}
#endif

TEST("cases: flush-to-zero set by another library does not change answers, and the search restores it") {
#if defined(__x86_64__)
  const uint32_t before = _mm_getcsr();
  const Data tiny = make(60, 30, [](auto i, auto j, auto&) { return 0x1p-140f * static_cast<float>((i * 7 + j * 3) % 61); });
  trawl::ThreadPool pool(2);
  std::vector<trawl::SearchResult> results;
  for (int flush = 1; flush >= 0; --flush) {
    _mm_setcsr(flush ? before | 0x8040 : before);
    const auto built = build(Metric::kSquaredL2, tiny, pool);
    const Data query = first_rows(tiny, 3);
    results.push_back(trawl::search(*built->index, query.values.data(), 3, SearchOptions(), pool));
    CHECK_EQUAL(_mm_getcsr() & 0x8040u, flush ? 0x8040u : 0u);
  }
  _mm_setcsr(before);
  CHECK(results[0].rows == results[1].rows && results[0].scores == results[1].scores);
  CHECK(results[0].scores[1] < 0);  // the distance of denormals is not zero
#endif
}

TEST("cases: NaN and infinity are refused, and the message names the row or query and the column") {
  trawl::ThreadPool pool(2);
  Data data = gaussian(50, 12, 17);
  data.row(33)[7] = std::numeric_limits<float>::quiet_NaN();
  data.row(41)[2] = std::numeric_limits<float>::infinity();
  CHECK_REFUSED(build(Metric::kCosine, data, pool), trawl::ErrorCode::kNotFinite, "row 33 is NaN or infinite at column 7");
  BuildOptions without;
  without.with_codes = false;
  without.shards = 2;
  Data queries = gaussian(3, 12, 18);
  std::fill_n(queries.row(1), 12, 0.0f);
  for (const Metric metric : kMetrics) {
    const auto each = build(metric, data, pool, without);
    for (int64_t q = 0; q < 3; ++q) {
      CHECK_REFUSED(trawl::search(*each->index, queries.row(q), 1, SearchOptions(), pool), trawl::ErrorCode::kNotFinite, "at column");
    }
  }
  const auto built = build(Metric::kInnerProduct, data, pool, without);
  queries.row(2)[11] = -std::numeric_limits<float>::infinity();
  CHECK_REFUSED(trawl::search(*built->index, queries.row(0), 3, SearchOptions(), pool), trawl::ErrorCode::kNotFinite,
                "query 2 is NaN or infinite at column 11");
}

TEST("cases: a query whose score does not fit float32 has the row in place of hits, and the other queries have their hits") {
  trawl::ThreadPool pool(2);
  Data data = gaussian(30, 8, 19);
  for (int64_t j = 0; j < 8; ++j) data.row(5)[j] = kLargest, data.row(6)[j] = -kLargest;
  const auto built = build(Metric::kInnerProduct, data, pool);
  const std::vector<float> query(8, 2.0f);
  SearchOptions options;
  options.k = 1;
  const std::vector<float> other(8, 1e-6f);
  std::vector<float> both = query;
  both.insert(both.end(), other.begin(), other.end());
  const auto found = trawl::search(*built->index, both.data(), 2, options, pool);
  CHECK_EQUAL(found.overflow_rows[0], 5);
  CHECK_EQUAL(found.counts[0], 0);
  CHECK_EQUAL(found.rows[0], -1);
  CHECK_EQUAL(found.overflow_rows[1], -1);
  CHECK_EQUAL(found.rows[1], 5);
  const auto l2 = build(Metric::kSquaredL2, data, pool);
  CHECK(trawl::search(*l2->index, query.data(), 1, options, pool).rows[0] != 5);
}

TEST("cases: the squared distance never uses fused multiply-adds, and is +0 for an identical row") {
  // The square of 1/3 as float32 needs 48 bits, so a fused sum would differ in the last place.
  trawl::ThreadPool pool(1);
  const Data data = gaussian(40, 33, 20), queries = gaussian(5, 33, 21);
  const auto built = build(Metric::kSquaredL2, data, pool);
  SearchOptions options;
  CHECK_SEARCH(*built->index, data, queries, options, pool);
  const auto same = trawl::search(*built->index, data.row(9), 1, options, pool);
  CHECK_EQUAL(same.rows[0], 9);
  CHECK(same.scores[0] == 0 && !std::signbit(same.scores[0]));
}
