// Compares searches over random shapes with the oracle, bit for bit.
#include "oracle.hpp"

using namespace oracle;
using trawl::SearchOptions;

namespace {

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const trawl::IsaStatus& isa : trawl::list_isas()) {
    if (isa.available) names.push_back(isa.name);
  }
  return names;
}

}  // namespace

TEST("exact: random shapes, metrics, shards, live rows, filters, threads and instruction sets agree with the oracle") {
  std::mt19937 random(7);
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  const int rounds = check::small() ? 12 : 150;
  trawl::ThreadPool pool(2);
  for (int round = 0; round < rounds; ++round) {
    const Metric metric = kMetrics[random() % 3];
    const int64_t dimensions[] = {1, 2, 3, 63, 64, 65, 100, 128, 200, 256, 300, 384};
    const int64_t d = dimensions[random() % 12], n = pick(0, check::small() ? 200 : 700);
    const Data data = random() % 2 ? gaussian(n, d, round) : encoder_like(n, d, round);
    const int64_t count = pick(1, 70);
    Data queries = random() % 2 ? gaussian(count, d, 1000 + round) : encoder_like(count, d, 1000 + round);
    if (n > 0) std::copy(data.row(0), data.row(0) + d, queries.row(0));  // one query equals a row
    BuildOptions build_options;
    build_options.shards = static_cast<int>(pick(1, 5));
    build_options.rows_per_block = 16 * pick(1, 6);
    build_options.split_files = random() % 3 == 0;
    if (random() % 2) build_options.live = random_bits(n, random);
    const std::vector<uint64_t> filter = random_bits(n, random);
    const auto built = build(metric, data, pool, build_options);
    pool.set_threads(static_cast<int>(pick(1, 4)));
    for (const std::string& isa : available_isas()) {
      SearchOptions options;
      options.k = random() % 2 ? pick(1, 20) : pick(1, n + 5);
      options.kernels = &trawl::choose_kernels(isa);
      options.candidate_capacity = random() % 3 == 0 ? 1 : 1024;
      options.candidate_limit = random() % 4 == 0 ? 1 : 65536;
      options.batch_queries = pick(1, 70);
      if (random() % 3 == 0) options.filter_bits = filter.data();
      CHECK_SEARCH(*built->index, data, queries, options, pool);
    }
  }
}

TEST("exact: the full scan without codes agrees with the oracle, and so does an index with codes in some shards") {
  trawl::ThreadPool pool(2);
  for (const Metric metric : kMetrics) {
    const Data data = encoder_like(500, 96, 3), queries = encoder_like(9, 96, 4);
    BuildOptions without;
    without.shards = 3;
    without.with_codes = false;
    const auto plain = build(metric, data, pool, without);
    SearchOptions options;
    options.k = 17;
    const auto result = CHECK_SEARCH(*plain->index, data, queries, options, pool);
    CHECK(result.stats[0].full_scan);

    BuildOptions with;
    with.shards = 2;
    const auto coded = build(metric, data, pool, with);
    trawl::Index mixed(metric, 96);
    mixed.add_shard(coded->index->shards()[0].rows, nullptr);
    mixed.add_shard(coded->index->shards()[1].rows, coded->index->shards()[1].codes);
    CHECK_SEARCH(mixed, data, queries, options, pool);
  }
}

TEST("exact: float16 rows have the same scores as the float32 rows they represent, bit for bit") {
  trawl::ThreadPool pool(2);
  for (const Metric metric : kMetrics) {
    Data data = encoder_like(400, 130, 5);
    for (float& value : data.values) {
      uint16_t half;
      const float coarse = std::nearbyint(value * 4096) / 4096;  // at most 12 bits, one more than in float16
      value = trawl::first_not_f16(&coarse, 1) == 1 ? coarse : 0.125f;
      trawl::f32_to_f16_array(&value, 1, &half);
      CHECK_EQUAL(trawl::f16_to_f32(half), value);
    }
    const Data queries = encoder_like(20, 130, 6);
    SearchOptions options;
    for (const bool split : {false, true}) {
      BuildOptions build_options;
      build_options.half = true;
      build_options.shards = 2;
      build_options.split_files = split;
      const auto built = build(metric, data, pool, build_options);
      CHECK_SEARCH(*built->index, data, queries, options, pool);
    }
  }
}

TEST("exact: a filter limits the results to its rows, even to none, and may exclude whole blocks") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(600, 80, 8), queries = encoder_like(20, 80, 9);
  for (const Metric metric : kMetrics) {
    BuildOptions build_options;
    build_options.shards = 3;
    build_options.rows_per_block = 32;
    const auto built = build(metric, data, pool, build_options);
    for (int pattern = 0; pattern < 5; ++pattern) {
      std::vector<uint64_t> bits(10, 0);
      std::mt19937 random(pattern);
      for (int64_t i = 0; i < 600; ++i) {
        const bool keep = pattern == 0 ? false : pattern == 1 ? i == 337 : pattern == 2 ? i >= 200 && i < 230 : random() % pattern == 0;
        if (keep) bits[i / 64] |= uint64_t{1} << (i % 64);
      }
      SearchOptions options;
      options.filter_bits = bits.data();
      for (const int64_t limit : {1, 65536}) {
        options.candidate_limit = limit;
        CHECK_SEARCH(*built->index, data, queries, options, pool);
      }
    }
  }
}

// Each row with this probability. In `mixed`, stretches of rows with another share lie between.
std::vector<uint64_t> scattered(int64_t rows, double share, bool mixed, std::mt19937& random) {
  std::vector<uint64_t> bits((rows + 63) / 64, 0);
  for (int64_t i = 0; i < rows; ++i) {
    const double here = mixed && i / 300 % 2 == 1 ? 1 - share : share;
    if (random() % 1000000 < here * 1000000) bits[i / 64] |= uint64_t{1} << (i % 64);
  }
  return bits;
}

TEST("exact: a filter that keeps any share of the rows, scattered over blocks of any size, gives the oracle's answer") {
  std::mt19937 random(14);
  trawl::ThreadPool pool(2);
  const int64_t n = check::small() ? 500 : 2100;
  for (const Metric metric : kMetrics) {
    const Data data = encoder_like(n, 130, 15), queries = encoder_like(37, 130, 16);
    for (const int64_t rows_per_block : {16, 112, 1024}) {
      BuildOptions build_options;
      build_options.shards = 3;
      build_options.rows_per_block = rows_per_block;
      build_options.prefilter = 64;
      const std::vector<uint64_t> live = scattered(n, 0.9, false, random);
      if (rows_per_block == 112) build_options.live = live;
      const auto built = build(metric, data, pool, build_options);
      for (const double share : {0.005, 0.1, 0.3, 0.6, 0.74, 0.76, 0.99}) {
        const auto filter = scattered(n, share, rows_per_block == 1024, random);
        SearchOptions options;
        options.filter_bits = filter.data();
        options.prefilter.sample_rows = 1;
        options.prefilter.trial_share = options.prefilter.refined_share = 1;
        for (const std::string& isa : available_isas()) {
          options.kernels = &trawl::choose_kernels(isa);
          options.batch_queries = 1 + static_cast<int64_t>(random() % 40);
          options.prefilter.use = random() % 2 == 0;
          options.k = 1 + static_cast<int64_t>(random() % 30);
          CHECK_SEARCH(*built->index, data, queries, options, pool);
        }
      }
    }
  }
}

TEST("exact: searches find only live rows that are in the request's filter, with codes and without") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(600, 80, 8), queries = encoder_like(20, 80, 9);
  std::mt19937 random(1);
  std::vector<uint64_t> none(10, 0), one(10, 0), all(10, ~uint64_t{0});
  one[337 / 64] = uint64_t{1} << (337 % 64);
  for (const std::vector<uint64_t>& live : {none, one, all, random_bits(600, random)}) {
    BuildOptions build_options;
    build_options.shards = 3;
    build_options.rows_per_block = 32;
    build_options.live = live;
    const auto coded = build(Metric::kInnerProduct, data, pool, build_options);
    build_options.with_codes = false;
    const auto plain = build(Metric::kInnerProduct, data, pool, build_options);
    for (const std::vector<uint64_t>& filter : {none, one, all, random_bits(600, random)}) {
      SearchOptions options;
      options.filter_bits = filter.data();
      CHECK_SEARCH(*coded->index, data, queries, options, pool);
      CHECK_SEARCH(*plain->index, data, queries, options, pool);
    }
  }
  trawl::Index index(Metric::kInnerProduct, 80);
  index.add_shard(std::make_shared<trawl::Rows>(data.values.data(), trawl::RowType::kFloat32, 600, 80), nullptr);
  CHECK_REFUSED(index.set_live_rows(std::vector<uint64_t>(9)), trawl::ErrorCode::kBadArgument, "600 rows need 10");
}

TEST("exact: an answer does not depend on batch, threads, shards or instruction set") {
  const Data data = encoder_like(1500, 256, 10), queries = encoder_like(100, 256, 11);
  trawl::ThreadPool pool(1);
  SearchOptions options;
  options.k = 50;
  std::vector<int64_t> rows;
  std::vector<double> scores;
  for (int shards = 1; shards <= 5; shards += 2) {
    BuildOptions build_options;
    build_options.shards = shards;
    build_options.rows_per_block = 64;
    const auto built = build(Metric::kInnerProduct, data, pool, build_options);
    for (int threads = 1; threads <= 4; ++threads) {
      pool.set_threads(threads);
      for (const std::string& isa : available_isas()) {
        for (const int64_t batch : {1, 5, 16, 33, 100}) {
          if (check::small() && batch != 33) continue;
          options.kernels = &trawl::choose_kernels(isa);
          options.batch_queries = batch;
          const auto result = trawl::search(*built->index, queries.values.data(), queries.n, options, pool);
          if (rows.empty()) rows = result.rows, scores = result.scores;
          CHECK(result.rows == rows && std::memcmp(result.scores.data(), scores.data(), 8 * scores.size()) == 0);
        }
      }
    }
  }
}

TEST("exact: the candidates are few on encoder-like data") {
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(check::small() ? 1000 : 4000, 256, 12), queries = encoder_like(64, 256, 13);
  BuildOptions build_options;
  build_options.rows_per_block = 1024;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  SearchOptions options;
  const auto result = CHECK_SEARCH(*built->index, data, queries, options, pool);
  for (const trawl::QueryStats& stats : result.stats) {
    CHECK(!stats.full_scan && stats.rescored >= 10 && stats.rescored < 250);
  }
}

TEST("exact: a search that reads a vector other than the one that its codes were made of is refused") {
  TempDir directory;
  const std::string vectors = directory.file(), codes = directory.file();
  trawl::ThreadPool pool(2);
  Data data = encoder_like(2000, 64, 14);
  const Data queries = encoder_like(5, 64, 15);
  const auto bytes = static_cast<int64_t>(data.values.size() * 4);
  write_file(vectors, data.values.data(), bytes);
  for (const Metric metric : {Metric::kInnerProduct, Metric::kCosine, Metric::kSquaredL2}) {
    trawl::CodesWriter writer(codes, metric, data.d);
    writer.append(data.values.data(), data.n, pool);
    writer.finish(pool);
    trawl::Index index(metric, data.d);
    const std::vector<trawl::RowSegment> segments = {{vectors, 0, bytes}};
    index.add_shard(std::make_shared<trawl::Rows>(segments, trawl::RowType::kFloat32, data.n, data.d), trawl::CodesFile::open(codes));
    trawl::search(index, queries.values.data(), queries.n, {}, pool);
    for (float& value : data.values) value = -value;
    write_file(vectors, data.values.data(), bytes);
    CHECK_REFUSED(trawl::search(index, queries.values.data(), queries.n, {}, pool), trawl::ErrorCode::kFileChanged,
                  "does not fit its codes");
    CHECK_REFUSED(index.require_unchanged(), trawl::ErrorCode::kFileChanged, "was written to");
    ::remove(codes.c_str());
  }
}
