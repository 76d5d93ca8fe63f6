// Compares every instruction set with the serial kernel on random digits and codes. If the row test is exact, both keep the same
// pairs for every shape.
#include <set>

#include "base/aligned_buffer.hpp"
#include "dense/codes/query_pack.hpp"
#include "dense/kernels/kernels.hpp"
#include "oracle.hpp"

namespace trawl {
extern const Kernels *const kEmulatedAmxKernels, *const kEmulatedAmxVectorKernels;
}

using namespace oracle;

namespace {

std::vector<const trawl::Kernels*> all_kernels() {
  std::vector<const trawl::Kernels*> list;
  for (const trawl::IsaStatus& isa : trawl::list_isas()) {
    if (isa.available) list.push_back(&trawl::select_kernels(isa.name));
    if (isa.available && isa.name == "avx512-vnni") list.push_back(trawl::kEmulatedAmxVectorKernels);
  }
  if (trawl::kEmulatedAmxKernels != nullptr) list.push_back(trawl::kEmulatedAmxKernels);
  return list;
}

// Largest digits of the problems: of digits in row order, and of digits in lane order where they are coarser.
constexpr int kDigitRanges[] = {127, 32};

// Random codes and digits, packed in both layouts of a kernel. With s = 1 and the other factors zero, v is float(I), so a kernel
// keeps exactly the pairs with I >= theta, if |I| < 2^24 or theta is not close to I.
struct Problem {
  Problem(int rows, int queries, int64_t padded, uint32_t seed, bool extreme, int largest = 127)
      : largest(largest),
        rows(rows),
        queries(queries),
        groups((queries + 15) / 16),
        padded(padded),
        codes(64 * padded),
        digits(groups * 16 * padded),
        scale(64),
        residual(64),
        norm(64),
        bias(64),
        sums(64),
        phi(groups * 16),
        a(groups * 16),
        c(groups * 16),
        theta(groups * 16) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < 64 * padded; ++i) codes[i] = value(random, extreme, 127);
    for (int64_t i = 0; i < queries * padded; ++i) digits[i] = value(random, extreme, largest);
    for (int i = 0; i < 64; ++i) {
      scale[i] = 1;
      bias[i] = static_cast<float>(i);
      for (int64_t j = 0; j < padded; ++j) sums[i] += codes[i * padded + j];
    }
    for (int q = 0; q < groups * 16; ++q) {
      phi[q] = static_cast<float>(q % 7);
      theta[q] = q < queries ? static_cast<float>(static_cast<int>(random() % 4000) - 2000) * std::sqrt(static_cast<float>(padded)) : 3e38f;
    }
  }
  static int8_t value(std::mt19937& random, bool extreme, int largest) {
    const auto values = static_cast<uint32_t>(2 * largest + 1);
    return static_cast<int8_t>(extreme ? (random() % 2 ? largest : -largest) : static_cast<int>(random() % values) - largest);
  }
  int largest, rows, queries, groups;
  int64_t padded;
  trawl::AlignedBuffer<int8_t> codes, digits;
  trawl::AlignedBuffer<float> scale, residual, norm, bias;
  trawl::AlignedBuffer<int32_t> sums;
  trawl::AlignedBuffer<float> phi, a, c, theta;

  trawl::CodeRows view() const {
    return {
        .codes_i8 = codes.data(),
        .padded = padded,
        .rows = rows,
        .scale_f32 = scale.data(),
        .residual_f32 = residual.data(),
        .test_norm_f32 = norm.data(),
        .bias_f32 = bias.data(),
        .code_sum_i32 = sums.data(),
        .first_pass = true,
    };
  }
  int64_t dot(int i, int q) const {
    int64_t sum = 0;
    for (int64_t j = 0; j < padded; ++j) sum += static_cast<int64_t>(codes[i * padded + j]) * digits[q * padded + j];
    return sum;
  }
  using Pairs = std::set<std::pair<int, int>>;
  Pairs expected() const {
    Pairs kept;
    for (int i = 0; i < rows; ++i) {
      for (int q = 0; q < queries; ++q) {
        const int64_t dot = this->dot(i, q);
        CHECK(dot == static_cast<int32_t>(dot));
        if (static_cast<float>(dot) + phi[q] * bias[i] >= theta[q]) kept.insert({i, q});
      }
    }
    return kept;
  }
  Pairs collect(const trawl::Hit* hits, size_t count, int first_query) const {
    Pairs kept;
    for (size_t h = 0; h < count; ++h) {
      if (hits[h].row < rows && first_query + hits[h].query < queries) {
        CHECK(kept.insert({hits[h].row, first_query + hits[h].query}).second);  // each pair only once
      }
    }
    return kept;
  }
  // The pairs that a kernel keeps, in each of its forms that takes digits of this size.
  std::vector<Pairs> by_both(const trawl::Kernels& kernels, int at_once) const {
    std::vector<Pairs> kept = {by_rows(kernels)};
    if (largest <= kernels.group_digits) kept.push_back(by_groups(kernels, at_once));
    return kept;
  }
  Pairs by_groups(const trawl::Kernels& kernels, int at_once) const {
    trawl::AlignedBuffer<int8_t> packed(groups * 16 * padded);
    for (int q = 0; q < groups * 16; ++q) {
      for (int64_t j = 0; j < padded; ++j) {
        const int8_t digit = q < queries ? digits[q * padded + j] : int8_t{0};
        packed[q / 16 * 16 * padded + j / 4 * 64 + q % 16 * 4 + j % 4] = static_cast<int8_t>(digit + kernels.groups_offset);
      }
    }
    Pairs kept;
    std::vector<trawl::Hit> hits(trawl::kMaxHits);
    const trawl::ScanSession session(kernels);
    for (int g = 0; g < groups; g += at_once) {
      const int here = std::min(at_once, groups - g);
      const trawl::QueryTest test = {phi.data() + g * 16, a.data() + g * 16, c.data() + g * 16, theta.data() + g * 16};
      const size_t count = kernels.scan_groups(view(), packed.data() + g * 16 * padded, here, test, hits.data());
      for (const auto& pair : collect(hits.data(), count, g * 16)) CHECK(kept.insert(pair).second);
    }
    return kept;
  }
  Pairs by_rows(const trawl::Kernels& kernels) const {
    trawl::AlignedBuffer<int8_t> row_order(queries * padded);
    for (int64_t i = 0; i < queries * padded; ++i) {
      row_order[i] = static_cast<int8_t>(digits[i] ^ (kernels.rows_offset ? -128 : 0));
    }
    Pairs kept;
    std::vector<trawl::Hit> hits(trawl::kMaxHits);
    for (int q = 0; q < queries; q += trawl::kMaxRowsQueries) {
      const int here = std::min(trawl::kMaxRowsQueries, queries - q);
      const trawl::QueryTest test = {phi.data() + q, a.data() + q, c.data() + q, theta.data() + q};
      const size_t count = kernels.scan_rows(view(), row_order.data() + q * padded, here, test, hits.data());
      for (const auto& pair : collect(hits.data(), count, q)) CHECK(kept.insert(pair).second);
    }
    return kept;
  }
};

}  // namespace

TEST("kernel: each instruction set, and AMX on emulated tiles, keeps the pairs that plain arithmetic keeps") {
  std::mt19937 random(1);
  for (int round = 0; round < (check::small() ? 30 : 200); ++round) {
    const int rows = 1 + static_cast<int>(random() % 64), queries = 1 + static_cast<int>(random() % 64);
    // AMX scans rows of up to 512 bytes in another way than wider ones.
    const int64_t padded = 64 * ((round % 4 == 3 ? 8 : 1) + static_cast<int64_t>(random() % 4));
    const uint32_t seed = random();
    for (const int largest : kDigitRanges) {
      const Problem problem(rows, queries, padded, seed, round % 5 == 0, largest);
      const auto expected = problem.expected();
      for (const trawl::Kernels* kernels : all_kernels()) {
        for (int at_once = 1; at_once <= trawl::kMaxScanGroups; ++at_once) {
          for (const Problem::Pairs& kept : problem.by_both(*kernels, at_once)) {
            if (kept != expected) check::fail(__FILE__, __LINE__, std::string(kernels->name) + ": the pairs differ");
          }
        }
      }
    }
  }
}

TEST("kernel: with numbers of any size and sign, each instruction set keeps a pair unless v is below the threshold") {
  std::mt19937 random(7);
  const auto one_in = [&](int n) { return random() % static_cast<uint32_t>(n) == 0; };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (int round = 0; round < (check::small() ? 30 : 120); ++round) {
    Problem problem(1 + static_cast<int>(random() % 64), 1 + static_cast<int>(random() % 64), round % 4 == 3 ? 576 : 128, random(), false,
                    kDigitRanges[round % 2]);
    // In most rounds the rows differ in one number only, or none: limits of several numbers are seldom close to a threshold.
    const int differing = round % 7, spread = differing == 0 ? 40 : 1, size = static_cast<int>(random() % 60) - 30;
    const auto number = [&](int exponent) {
      return std::ldexp(1 + static_cast<float>(random() % 1024) / 1024,
                        size + exponent + static_cast<int>(random() % static_cast<uint32_t>(spread)));
    };
    for (int i = 0; i < 64; ++i) {
      const auto next = [&](int which, float first) { return i > 0 && differing > 1 && which != differing ? first : number(0); };
      problem.scale[i] = next(2, problem.scale[0]) * (differing < 2 && one_in(20) ? 0 : 1);
      problem.bias[i] = next(3, problem.bias[0]) * (differing < 2 && one_in(2) ? -1 : 1);
      problem.residual[i] = next(4, problem.residual[0]);
      problem.norm[i] = differing < 2 && one_in(100) ? kInf : next(5, problem.norm[0]);
    }
    for (int q = 0; q < problem.queries; ++q) {
      problem.phi[q] = one_in(10) ? 0 : number(9 - size) * (one_in(2) ? -1 : 1);
      problem.a[q] = number(7 - size);
      problem.c[q] = number(4 - size);
    }
    // Of each pair, v in float64 and a bound of the rounding errors in float32.
    std::vector<std::pair<double, double>> values;
    for (int i = 0; i < problem.rows; ++i) {
      for (int q = 0; q < problem.queries; ++q) {
        double sum = 0, sizes = 0x1p-119;
        for (const double term :
             {problem.scale[i] * static_cast<double>(problem.dot(i, q)), static_cast<double>(problem.phi[q]) * problem.bias[i],
              static_cast<double>(problem.a[q]) * problem.residual[i], static_cast<double>(problem.c[q]) * problem.norm[i]}) {
          sum += term;
          sizes += std::fabs(term);
        }
        values.emplace_back(sum, sizes * 0x1p-21);
      }
    }
    // One query in eight keeps the row with the largest v of 16. The others keep few rows, so that tiles of 16 queries are dropped.
    for (int q = 0; q < problem.queries; ++q) {
      const int first = static_cast<int>(random() % static_cast<uint32_t>(problem.rows)) / 16 * 16;
      double largest = -kInf;
      for (int i = first; i < std::min(first + 16, problem.rows); ++i) largest = std::fmax(largest, values[i * problem.queries + q].first);
      const auto near = static_cast<float>(largest - (one_in(2) ? std::fabs(largest) * 0x1p-19 : 0));
      const float far = one_in(4) ? kInf : std::fabs(near) * 16;
      problem.theta[q] = one_in(100) ? -kInf : !std::isfinite(near) ? 0 : one_in(8) ? near : far;
    }
    for (int q = problem.queries; q < problem.groups * 16; ++q) problem.theta[q] = kInf;
    for (const trawl::Kernels* kernels : all_kernels()) {
      for (const Problem::Pairs& kept : problem.by_both(*kernels, 1 + round % trawl::kMaxScanGroups)) {
        for (int i = 0; i < problem.rows; ++i) {
          for (int q = 0; q < problem.queries; ++q) {
            const auto [v, error] = values[i * problem.queries + q];
            const bool is_kept = kept.count({i, q}) == 1;
            const bool must_keep = !(v - error < problem.theta[q]), may_keep = !(v + error < problem.theta[q]);
            if (is_kept ? !may_keep : must_keep) {
              check::fail(__FILE__, __LINE__,
                          std::string(kernels->name) + (is_kept ? " keeps" : " drops") + " row " + std::to_string(i) + " of query " +
                              std::to_string(q) + " in round " + std::to_string(round));
            }
          }
        }
      }
    }
  }
}

TEST("kernel: the largest sums, of 131072 products of the largest digits and codes, are correct in every instruction set") {
  const int64_t padded = check::small() ? 8192 : 131072;
  for (const int largest : kDigitRanges) {
    Problem problem(3, 17, padded, 5, true, largest);
    for (int64_t j = 0; j < padded; ++j) {
      problem.codes[j] = 127;
      problem.codes[padded + j] = -127;
      problem.digits[j] = static_cast<int8_t>(largest);
      problem.digits[16 * padded + j] = static_cast<int8_t>(-largest);
    }
    for (int i = 0; i < 2; ++i) problem.sums[i] = static_cast<int32_t>((i == 0 ? 127 : -127) * padded);
    for (int q = 0; q < 32; ++q) problem.theta[q] = q < 17 ? static_cast<float>(largest) * 64 * static_cast<float>(padded) : 3e38f;
    const auto expected = problem.expected();
    CHECK(expected.count({0, 0}) == 1 && expected.count({1, 16}) == 1 && expected.count({1, 0}) == 0);
    for (const trawl::Kernels* kernels : all_kernels()) {
      for (const Problem::Pairs& kept : problem.by_both(*kernels, 2)) CHECK(kept == expected);
    }
  }
}

TEST("kernel: the product of a row and the digits in row order of a query is exact") {
  for (const int64_t padded : {64, 320, 131072}) {
    const Problem problem(3, 2, padded, 13, padded > 320);
    for (const trawl::Kernels* kernels : all_kernels()) {
      CHECK_EQUAL(kernels->group_digits < trawl::kLargestDigit, kernels->dot_digits != nullptr);
      if (kernels->dot_digits == nullptr) continue;
      for (int i = 0; i < 3; ++i) {
        for (int q = 0; q < 2; ++q) {
          CHECK_EQUAL(int64_t{kernels->dot_digits(problem.digits.data() + q * padded, problem.codes.data() + i * padded, padded)},
                      problem.dot(i, q));
        }
      }
    }
  }
}

TEST("kernel: products of float64 values and codes agree up to rounding") {
  for (const int64_t padded : {64, 128, 768}) {
    const Problem problem(2, 1, padded, 9, false);
    std::vector<double> values(padded);
    std::mt19937 random(3);
    double size = 0;
    for (double& value : values) value = std::normal_distribution<double>()(random);
    for (int64_t j = 0; j < padded; ++j) size += std::fabs(values[j] * problem.codes[j]);
    const double expected = trawl::kSerialKernels->dot_codes(values.data(), problem.codes.data(), padded);
    for (const trawl::Kernels* kernels : all_kernels()) {
      CHECK(std::fabs(kernels->dot_codes(values.data(), problem.codes.data(), padded) - expected) <= size * 1e-13);
    }
  }
}

TEST("kernel: the second test of a pair has the value of the row test with digits in row order") {
  const int64_t d = 128;
  const Data rows = gaussian(16, d, 41), queries = gaussian(16, d, 42);
  trawl::ThreadPool pool(1);
  BuildOptions build_options;
  const auto built = build(Metric::kInnerProduct, rows, pool, build_options);
  const trawl::CodesFile& codes = *built->index->shards().front().codes;
  const trawl::PackMean mean(Metric::kInnerProduct, codes);
  const std::vector<double> wide(queries.values.begin(), queries.values.end());
  // The serial kernel with coarser digits, for processors whose kernels have none.
  trawl::Kernels coarser = *trawl::kSerialKernels;
  coarser.group_digits = 32;
  coarser.dot_digits = [](const int8_t* row_order, const int8_t* row, int64_t padded) {
    int32_t sum = 0;
    for (int64_t j = 0; j < padded; ++j) sum += row_order[j] * row[j];
    return sum;
  };
  std::vector<const trawl::Kernels*> tested = all_kernels();
  tested.push_back(&coarser);
  for (const trawl::Kernels* kernels : tested) {
    if (kernels->dot_digits == nullptr) continue;
    const trawl::KernelChoice choice = {kernels, kernels, trawl::kNever, trawl::kNever};
    const trawl::PackedQueries packed(trawl::CodesPacker(mean), wide.data(), 16, choice, pool);
    // Numbers of a similar size, so that a forgotten one is noticed.
    const Problem problem(16, 16, packed.padded, 43, false);
    trawl::CodeRows view = problem.view();
    std::vector<float> scale(64), residual(64), norm(64), bias(64);
    std::mt19937 random(44);
    for (int i = 0; i < 64; ++i) {
      const auto number = [&](float size) { return size * (1 + static_cast<float>(random() % 1024) / 1024); };
      scale[i] = number(1e-3f), residual[i] = number(1), norm[i] = number(1), bias[i] = number(1);
    }
    view.scale_f32 = scale.data(), view.residual_f32 = residual.data(), view.test_norm_f32 = norm.data(), view.bias_f32 = bias.data();
    const std::vector<float> all(16, -3e38f);
    std::vector<trawl::Hit> hits(trawl::kMaxHits);
    const size_t count = packed.kernels.scan_rows(view, packed.row_order_i8.data(), 16, packed.row_order.from(0, all.data()), hits.data());
    CHECK_EQUAL(count, size_t{16 * 16});
    for (size_t h = 0; h < count; ++h) {
      const int q = hits[h].query, i = hits[h].row;
      const float size = std::fabs(hits[h].value) + std::fabs(packed.row_order.phi[q] * bias[i]) + packed.row_order.a[q] * residual[i] +
                         packed.row_order.c[q] * norm[i];
      CHECK(std::fabs(trawl::row_order_value(view, i, packed, q) - hits[h].value) <= size * 0x1p-20f);
    }
  }
}

TEST("kernel: a hit has the value that was compared with the threshold") {
  for (const trawl::Kernels* kernels : all_kernels()) {
    const Problem problem(48, 16, 128, 21, false, kernels->group_digits);
    trawl::AlignedBuffer<int8_t> row_order(16 * 128);
    for (int64_t i = 0; i < 16 * 128; ++i) row_order[i] = static_cast<int8_t>(problem.digits[i] ^ (kernels->rows_offset ? -128 : 0));
    std::vector<trawl::Hit> hits(trawl::kMaxHits);
    trawl::AlignedBuffer<float> none(16), all(16);
    for (int q = 0; q < 16; ++q) all[q] = -3e38f;
    const trawl::QueryTest test = {problem.phi.data(), none.data(), none.data(), all.data()};
    const size_t count = kernels->scan_rows(problem.view(), row_order.data(), 16, test, hits.data());
    CHECK_EQUAL(count, size_t{48 * 16});
    const auto check = [&] {
      for (size_t h = 0; h < count; ++h) {
        int64_t dot = 0;
        for (int64_t j = 0; j < 128; ++j) dot += problem.codes[hits[h].row * 128 + j] * problem.digits[hits[h].query * 128 + j];
        CHECK_EQUAL(hits[h].value, static_cast<float>(dot) + problem.phi[hits[h].query] * problem.bias[hits[h].row]);
      }
    };
    check();
    trawl::AlignedBuffer<int8_t> packed(16 * 128);
    for (int q = 0; q < 16; ++q) {
      for (int64_t j = 0; j < 128; ++j) {
        packed[j / 4 * 64 + q * 4 + j % 4] = static_cast<int8_t>(problem.digits[q * 128 + j] + kernels->groups_offset);
      }
    }
    const trawl::ScanSession session(*kernels);
    CHECK_EQUAL(kernels->scan_groups(problem.view(), packed.data(), 1, test, hits.data()), count);
    check();
  }
}

TEST("kernel: projections of float32 rows have the same bits in every instruction set") {
  const int64_t d = 101;
  const Data rows = gaussian(trawl::kProjectRows, d, 31), panel = gaussian(d, trawl::kProjectColumns, 32);
  const std::vector<double> wide(rows.values.begin(), rows.values.end());
  std::vector<double> expected(trawl::kProjectRows * trawl::kProjectColumns, 0.0);
  for (int row = 0; row < trawl::kProjectRows; ++row) {
    for (int lane = 0; lane < trawl::kProjectColumns; ++lane) {
      double& sum = expected[row * trawl::kProjectColumns + lane];
      for (int64_t j = 0; j < d; ++j) sum += wide[row * d + j] * static_cast<double>(panel.row(j)[lane]);
    }
  }
  for (const trawl::Kernels* kernels : all_kernels()) {
    std::vector<double> sums(expected.size());
    kernels->project(wide.data(), panel.values.data(), d, sums.data());
    CHECK(std::memcmp(sums.data(), expected.data(), 8 * sums.size()) == 0);
  }
}

TEST("kernel: NaN and infinity in the row test keep the pair") {
  for (const int64_t padded : {64, 768}) {
    for (const int queries : {16, 32}) {  // AMX tests 16 rows of two groups of queries at once
      for (const trawl::Kernels* kernels : all_kernels()) {
        Problem problem(49, queries, padded, 11, false, kernels->group_digits);
        for (int q = 0; q < queries; ++q) problem.theta[q] = 3e38f, problem.phi[q] = 1;
        problem.bias[3] = problem.bias[48] = std::numeric_limits<float>::quiet_NaN();
        problem.bias[27] = std::numeric_limits<float>::infinity();
        const auto groups = problem.by_groups(*kernels, queries / 16), rows = problem.by_rows(*kernels);
        CHECK(groups.size() == static_cast<size_t>(3 * queries) && rows == groups);
        CHECK(groups.count({3, 0}) == 1 && groups.count({27, queries - 1}) == 1 && groups.count({48, 8}) == 1);
      }
    }
  }
}

TEST("kernel: list_isas() gives a reason for each instruction set, and missing ones are refused") {
  const auto list = trawl::list_isas();
  CHECK_EQUAL(list.size(), size_t{5});
  CHECK(list.back().name == "serial" && list.back().available);
  for (const trawl::IsaStatus& isa : list) {
    CHECK(!isa.reason.empty());
    if (isa.available) {
      CHECK_EQUAL(std::string(trawl::kernels_name(trawl::select_kernels(isa.name))), isa.name);
    } else {
      CHECK_REFUSED(trawl::select_kernels(isa.name), trawl::ErrorCode::kIsaUnavailable, isa.reason);
    }
  }
  CHECK_REFUSED(trawl::select_kernels("mmx"), trawl::ErrorCode::kIsaUnavailable, "serial");
}
