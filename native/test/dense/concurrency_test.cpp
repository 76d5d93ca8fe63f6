// Concurrent searches over one index and one pool. `make test-tsan` runs them under ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <thread>

#include "oracle.hpp"

using namespace oracle;
using trawl::SearchOptions;

TEST("concurrent searches with different options share an index, and a pool whose size changes") {
  const Data data = encoder_like(600, 64, 1), queries = encoder_like(40, 64, 2);
  trawl::ThreadPool pool(2);
  BuildOptions build_options;
  build_options.shards = 2;
  build_options.prefilter = 64;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  std::vector<Hits> expected;
  for (int64_t q = 0; q < queries.n; ++q) expected.push_back(top_k(Metric::kInnerProduct, queries.row(q), data, 20));
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 6; ++round) {
        SearchOptions options;
        options.k = 20;
        options.candidate_limit = c == 3 ? 1 : 65536;
        options.batch_queries = 7 + c;
        options.prefilter.sample_rows = 1;
        options.prefilter.trial_share = c == 2 ? 0.3 : 1;
        options.prefilter.refined_share = c == 1 ? 0.02 : 1;
        const auto result = trawl::search(*built->index, queries.row(c), queries.n - c, options, pool);
        try {
          for (int64_t q = c; q < queries.n; ++q) check_same(result, q - c, expected[q], __FILE__, __LINE__);
        } catch (const std::exception&) {
          ++wrong;
        }
      }
    });
  }
  for (int round = 0; round < 10; ++round) pool.set_threads(1 + round % 4);
  for (std::thread& each : callers) each.join();
  CHECK_EQUAL(wrong.load(), 0);
}

TEST("cancelled searches end with kCancelled and do not affect other searches") {
  const int64_t n = check::small() ? 2000 : 40000;
  const Data data = gaussian(n, 64, 3), queries = gaussian(256, 64, 4);
  trawl::ThreadPool pool(2);
  const auto built = build(Metric::kInnerProduct, data, pool);
  BuildOptions without;
  without.with_codes = false;
  const auto plain = build(Metric::kInnerProduct, data, pool, without);
  std::atomic<bool> cancel{true};
  SearchOptions options;
  options.cancel = &cancel;
  CHECK_REFUSED(trawl::search(*built->index, queries.row(0), 256, options, pool), trawl::ErrorCode::kCancelled, "cancelled");
  CHECK_REFUSED(trawl::search(*plain->index, queries.row(0), 256, options, pool), trawl::ErrorCode::kCancelled, "cancelled");
  cancel = false;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel = true;
  });
  std::atomic<bool> other_is_right{false};
  std::thread other([&] {
    const auto result = trawl::search(*built->index, queries.row(1), 1, {}, pool);
    check_same(result, 0, top_k(Metric::kInnerProduct, queries.row(1), data, 10), __FILE__, __LINE__);
    other_is_right = true;
  });
  bool cancelled = false;
  try {
    for (int i = 0; i < 10000; ++i) trawl::search(*plain->index, queries.row(0), 256, options, pool);
  } catch (const trawl::Error& error) {
    cancelled = error.code == trawl::ErrorCode::kCancelled;
  }
  canceller.join();
  other.join();
  CHECK(cancelled && other_is_right);
}
