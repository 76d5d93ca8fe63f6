// The choice of kernels by the number of queries: the decision from given times, and searches that change kernels between passes.
#include <map>

#include "dense/kernels/kernel_choice.hpp"
#include "oracle.hpp"

namespace trawl {
extern const Kernels *const kEmulatedAmxKernels, *const kEmulatedAmxVectorKernels;
}

using namespace oracle;

namespace {

using Speeds = std::map<int64_t, std::pair<double, double>>;  // queries -> M dot products/s of few and of many

int64_t chosen(const Speeds& speeds) {
  return trawl::faster_from(
      trawl::kTimedQueries,
      [&](bool many, int64_t queries) {
        const auto at = speeds.lower_bound(queries);
        const auto [few_speed, many_speed] = at == speeds.end() ? speeds.rbegin()->second : at->second;
        return static_cast<double>(queries) / (many ? many_speed : few_speed);
      },
      trawl::kAmxFrom);
}

// The serial kernels with digits to which 128 is added, as AVX-512 VNNI has them: scanned by other kernels, or digits of others, they
// give other sums.
std::vector<int8_t> without_offset(const int8_t* digits, int64_t count) {
  std::vector<int8_t> plain(digits, digits + count);
  for (int8_t& digit : plain) digit = static_cast<int8_t>(digit ^ -128);
  return plain;
}
const trawl::Kernels& offset_kernels() {
  static const trawl::Kernels kernels = [] {
    trawl::Kernels made = trawl::select_kernels("serial");
    made.name = "offset";
    made.groups_offset = 128;
    made.rows_offset = true;
    made.groups_from = 5;
    made.groups_at_once = 2;
    made.scan_groups = [](const trawl::CodeRows& rows, const int8_t* packed, int groups, const trawl::QueryTest& test, trawl::Hit* hits) {
      const auto plain = without_offset(packed, groups * trawl::kGroupQueries * rows.padded);
      return trawl::select_kernels("serial").scan_groups(rows, plain.data(), groups, test, hits);
    };
    made.scan_rows = [](const trawl::CodeRows& rows, const int8_t* row_order, int queries, const trawl::QueryTest& test, trawl::Hit* hits) {
      const auto plain = without_offset(row_order, queries * rows.padded);
      return trawl::select_kernels("serial").scan_rows(rows, plain.data(), queries, test, hits);
    };
    return made;
  }();
  return kernels;
}

}  // namespace

TEST("kernel choice: with the speeds of an Emerald Rapids, AMX scans from 16 queries on, over codes and over prefilters") {
  CHECK_EQUAL(chosen({{16, {245, 1110}}, {64, {293, 1517}}, {256, {294, 1846}}}), int64_t{16});
  CHECK_EQUAL(chosen({{16, {663, 2949}}, {64, {673, 3978}}, {256, {677, 3795}}}), int64_t{16});
}

TEST("kernel choice: with the speeds of an earlier AMX kernel on a Sapphire Rapids, VNNI scans 32 queries and fewer, AMX more") {
  CHECK_EQUAL(chosen({{16, {276, 249}}, {32, {339, 300}}, {64, {339, 336}}, {256, {289, 488}}}), int64_t{64});
}

TEST("kernel choice: the faster kernels by more than the noise are chosen, and of equal ones those that are expected") {
  CHECK_EQUAL(chosen({{256, {100, 200}}}), int64_t{16});
  CHECK_EQUAL(chosen({{256, {200, 100}}}), trawl::kNever);
  CHECK_EQUAL(chosen({{256, {100, 100}}}), trawl::kAmxFrom);
  CHECK_EQUAL(chosen({{256, {100, 104}}}), trawl::kAmxFrom);
  CHECK_EQUAL(chosen({{256, {104, 100}}}), trawl::kAmxFrom);
  CHECK_EQUAL(chosen({{32, {200, 100}}, {256, {100, 200}}}), int64_t{64});
  // Slower with the most queries: never, whatever it is with fewer.
  CHECK_EQUAL(chosen({{128, {100, 200}}, {256, {200, 100}}}), trawl::kNever);
  // One batch size at which it is slower divides: those above it decide.
  CHECK_EQUAL(chosen({{64, {100, 200}}, {96, {200, 100}}, {256, {100, 200}}}), int64_t{128});
}

TEST("kernel choice: rows of a prefilter and of codes have their own numbers of queries") {
  const trawl::Kernels& few = trawl::select_kernels("serial");
  trawl::Kernels many = few;
  const trawl::KernelChoice choice = {&few, &many, 32, 96};
  CHECK(&choice.for_queries(31, 320) == &few && &choice.for_queries(32, 320) == &many);
  CHECK(&choice.for_queries(95, 768) == &few && &choice.for_queries(96, 768) == &many);
}

TEST("kernel choice: what is timed scans every row and query of each instruction set") {
  for (const trawl::IsaStatus& isa : trawl::list_isas()) {
    if (!isa.available || isa.name == "serial") continue;
    for (const int64_t padded : {320, 768}) CHECK(trawl::scan_seconds(trawl::select_kernels(isa.name), 33, padded) > 0);
  }
  static int64_t rows = 0;
  trawl::Kernels counting = trawl::select_kernels("serial");
  counting.scan_groups = [](const trawl::CodeRows& view, const int8_t*, int groups, const trawl::QueryTest&, trawl::Hit*) {
    rows += view.rows * groups;
    return size_t{0};
  };
  trawl::scan_seconds(counting, 33, 64);
  CHECK(rows > 0 && rows % (3 * trawl::kTimedRows) == 0);
}

TEST("kernel choice: a name gives its instruction set for every number of queries, no name the fastest") {
  for (const trawl::IsaStatus& isa : trawl::list_isas()) {
    if (!isa.available) {
      CHECK_REFUSED(trawl::choose_kernels(isa.name), trawl::ErrorCode::kIsaUnavailable, isa.reason);
      continue;
    }
    const trawl::ChosenIsas chosen = trawl::chosen_isas(isa.name);
    CHECK(chosen.small_batch == isa.name && chosen.large_batch == isa.name && chosen.codes_from == 0 && chosen.prefilters_from == 0);
  }
  const trawl::ChosenIsas fastest = trawl::chosen_isas();
  CHECK_EQUAL(fastest.large_batch, std::string(trawl::kernels_name(trawl::select_kernels())));
  CHECK(fastest.small_batch == fastest.large_batch || (fastest.small_batch == "avx512-vnni" && fastest.large_batch == "amx"));
  CHECK(&trawl::choose_kernels() == &trawl::choose_kernels());
}

TEST("kernel choice: searches whose passes have different kernels agree with the oracle, with offset digits and with emulated AMX") {
  trawl::ThreadPool pool(2);
  std::mt19937 random(41);
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  const trawl::Kernels* const plain = &trawl::select_kernels("serial");
  bool has_vectors = false;
  for (const trawl::IsaStatus& isa : trawl::list_isas()) has_vectors |= isa.available && isa.name == "avx512-vnni";
  for (int round = 0; round < (check::small() ? 4 : 24); ++round) {
    const Metric metric = kMetrics[round % 3];
    const int64_t d = round % 6 == 5 ? 600 : round % 2 ? 128 : 200;
    const Data data = encoder_like(600, d, round), queries = encoder_like(70, d, 100 + round);
    BuildOptions build_options;
    build_options.shards = 1 + round % 3;
    if (round % 2) build_options.prefilter = 64;
    const auto built = build(metric, data, pool, build_options);
    const trawl::Kernels* other = round % 4 == 0 && trawl::kEmulatedAmxKernels ? trawl::kEmulatedAmxKernels : &offset_kernels();
    if (round % 4 != 0 && has_vectors) other = trawl::kEmulatedAmxVectorKernels;
    const trawl::KernelChoice choice = {round % 3 ? plain : other, round % 3 ? other : plain, pick(1, 70), pick(1, 70)};
    trawl::SearchOptions options;
    options.kernels = &choice;
    options.batch_queries = pick(1, 70);
    options.prefilter.sample_rows = 1;
    options.prefilter.trial_share = options.prefilter.refined_share = round % 4 ? 0.2 : 1;  // with 0.2 some queries switch to the codes
    CHECK_SEARCH(*built->index, data, queries, options, pool);
  }
}

TEST("kernel choice: kernels that scan the codes faster than a prefilter pays skip it, from their number of queries on, unless asked") {
  CHECK(trawl::kSerialKernels->codes_alone_from == INT64_MAX);
  if (trawl::kEmulatedAmxKernels != nullptr) CHECK_EQUAL(trawl::kEmulatedAmxKernels->codes_alone_from, int64_t{128});
  trawl::ThreadPool pool(2);
  const Data data = encoder_like(3000, 128, 7), queries = encoder_like(24, 128, 8);
  BuildOptions build_options;
  build_options.rows_per_block = 64;
  build_options.prefilter = 64;
  const auto built = build(Metric::kInnerProduct, data, pool, build_options);
  trawl::Kernels kernels = trawl::select_kernels();
  const trawl::KernelChoice choice = {&kernels, &kernels, 0, 0};
  const auto refined = [&](int64_t codes_alone_from, bool always) {
    kernels.codes_alone_from = codes_alone_from;
    trawl::SearchOptions options;
    options.kernels = &choice;
    options.prefilter.sample_rows = 1;
    options.prefilter.trial_share = options.prefilter.refined_share = 1;
    options.prefilter.always = always;
    int64_t sum = 0;
    for (const trawl::QueryStats& stats : CHECK_SEARCH(*built->index, data, queries, options, pool).stats) sum += stats.refined;
    return sum;
  };
  CHECK(refined(25, false) > 0 && refined(24, true) > 0);
  CHECK_EQUAL(refined(24, false), int64_t{0});
}
