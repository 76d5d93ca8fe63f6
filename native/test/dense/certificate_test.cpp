// The inequality: for every pair of a row and a query, lower <= S <= upper, and the row test keeps every row that reaches the
// threshold. The data are adversarial, so that the builds of `make test-mutations` fail.
#include "dense/codes/query_pack.hpp"
#include "dense/codes/rounding.hpp"
#include "dense/codes/row_codes.hpp"
#include "dense/kernels/kernels.hpp"
#include "dense/prefilter/prefilter_codes.hpp"
#include "oracle.hpp"

using namespace oracle;

namespace {

// Rows and their codes around a mean, encoded by RowCoder.
struct Coded {
  Coded(Metric metric, const Data& data, const std::vector<float>& mean)
      : coder(metric, mean, trawl::kSignSeed), codes(data.n * coder.padded()), stats(data.n) {
    trawl::RowCoder::Scratch scratch(coder.padded());
    for (int64_t i = 0; i < data.n; ++i) stats[i] = coder.encode(data.row(i), codes.data() + i * coder.padded(), scratch);
  }
  trawl::RowCoder coder;
  std::vector<int8_t> codes;
  std::vector<trawl::RowStats> stats;
};

// Writes a codes file with this mean, because a PackMean needs one.
std::shared_ptr<const trawl::CodesFile> empty_file(Metric metric, const std::vector<float>& mean) {
  TempDir directory;
  trawl::ThreadPool pool(1);
  trawl::CodesWriterOptions options;
  options.mean_f32 = mean;
  const std::string path = directory.file();
  trawl::CodesWriter writer(path, metric, static_cast<int64_t>(mean.size()), options);
  writer.finish(pool);
  return trawl::CodesFile::open(path);  // the mapping remains valid after the file is deleted
}

// The score inside the engine: -1/2 of the distance for L2.
double internal(Metric metric, double score) { return metric == Metric::kSquaredL2 ? 0.5 * score : score; }

struct Tally {
  int64_t pairs = 0, finite = 0;
};

void check_pairs(Metric metric, const Data& data, const Data& queries, const std::vector<float>& mean, Tally& tally) {
  const Coded coded(metric, data, mean);
  const int64_t d = data.d, padded = coded.coder.padded();
  const trawl::PackMean pack_mean(metric, *empty_file(metric, mean));
  std::vector<double> query(d), rotated(padded);
  // Digits in row order, and the coarser ones in lane order of AVX2.
  std::vector<int8_t> digits[2] = {std::vector<int8_t>(padded), std::vector<int8_t>(padded)};
  trawl::QueryBound bounds[2];
  for (int64_t q = 0; q < queries.n; ++q) {
    double square = 0;
    for (int64_t j = 0; j < d; ++j) square += static_cast<double>(queries.row(q)[j]) * queries.row(q)[j];
    for (int64_t j = 0; j < d; ++j) {
      query[j] = metric == Metric::kCosine && square > 0 ? queries.row(q)[j] / std::sqrt(square) : queries.row(q)[j];
    }
    trawl::prepare_query(pack_mean, query.data(), rotated.data(),
                         {{127, digits[0].data(), &bounds[0]}, {32, digits[1].data(), &bounds[1]}});
    std::vector<double> scores(data.n);
    for (int64_t i = 0; i < data.n; ++i) {
      const int8_t* codes = coded.codes.data() + i * padded;
      const trawl::RowStats& row = coded.stats[i];
      const double s = scores[i] = internal(metric, score(metric, queries.row(q), data.row(i), d));
      const double dot = trawl::kSerialKernels->dot_codes(rotated.data(), codes, padded);
      const auto [lower, upper] = bounds[0].interval(dot, row.scale_f32, row.residual_f32, row.norm_f32, row.bias_f64);
      ++tally.pairs;
      tally.finite += std::isfinite(upper - lower);
      if (lower > s || upper < s) {
        std::ostringstream text;
        text.precision(17);
        text << "row " << i << " query " << q << ": score " << s << " outside [" << lower << ", " << upper << "]";
        check::fail(__FILE__, __LINE__, text.str());
      }
    }
    // With the score of a row as threshold, the row test keeps all rows with that score or a higher one.
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    for (const size_t rank : {sorted.size() - 1, sorted.size() / 2, size_t{0}}) {
      const double tau = sorted[rank];
      for (int64_t i = 0; i < data.n; ++i) {
        if (scores[i] < tau) continue;
        const trawl::RowStats& row = coded.stats[i];
        float beta;
        trawl::row_test_biases(metric, &row.bias_f64, &row.norm_f32, 1, pack_mean.kappa, &beta);
        const bool care = trawl::row_untestable(row.bias_f64, row.norm_f32, row.residual_f32);
        const float norm = care ? std::numeric_limits<float>::infinity() : row.norm_f32, bias = care ? 0 : beta;
        alignas(64) float scale16[16] = {}, residual16[16] = {}, norm16[16] = {}, bias16[16] = {};
        alignas(64) int32_t sum16[16] = {};
        scale16[0] = row.scale_f32, residual16[0] = row.residual_f32, norm16[0] = norm, bias16[0] = bias;
        trawl::CodeRows view = {
            .codes_i8 = coded.codes.data() + i * padded,
            .padded = padded,
            .rows = 1,
            .scale_f32 = scale16,
            .residual_f32 = residual16,
            .test_norm_f32 = norm16,
            .bias_f32 = bias16,
            .code_sum_i32 = sum16,
            .first_pass = true,
        };
        trawl::Hit hit;
        for (int form = 0; form < 2; ++form) {
          const float theta = bounds[form].theta(tau);
          const trawl::QueryTest test = {&bounds[form].phi_f32, &bounds[form].test_a_f32, &bounds[form].test_n_f32, &theta};
          CHECK_EQUAL(trawl::kSerialKernels->scan_rows(view, digits[form].data(), 1, test, &hit), size_t{1});
        }
      }
    }
  }
}

// Three bases: the first 64 axes; the principal components of the data; the same components, slightly longer than 1.
std::vector<std::vector<float>> bases_for(const Data& data, const std::vector<float>& mean, int64_t h, trawl::ThreadPool& pool) {
  const int64_t d = data.d;
  std::vector<std::vector<float>> bases(1, std::vector<float>(h * d, 0.0f));
  for (int64_t i = 0; i < h; ++i) bases[0][i * d + i] = 1;
  Data centred = data;
  for (int64_t i = 0; i < data.n; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      const float value = data.row(i)[j] - mean[j];
      centred.row(i)[j] = std::fabs(value) < 1e18f ? value : 0.0f;
    }
  }
  std::vector<float> own = trawl::principal_components(centred.values.data(), data.n, d, h, trawl::select_kernels(), pool);
  if (own.empty()) return bases;
  bases.push_back(own);
  for (int64_t i = 0; i < h * d; ++i) own[i] *= 1.00003f;
  bases.push_back(own);
  return bases;
}

// The prefilter keeps every row if the threshold is the row's score.
void check_prefilter(Metric metric, const Data& data, const Data& queries, const std::vector<float>& mean, int64_t h, Tally& tally) {
  static trawl::ThreadPool pool(1);
  const int64_t d = data.d;
  const trawl::Kernels& kernels = trawl::select_kernels();
  const auto file = empty_file(metric, mean);
  const trawl::PackMean pack_mean(metric, *file);
  for (const std::vector<float>& basis : bases_for(data, mean, h, pool)) {
    const double orthogonality_error = trawl::orthogonality_error_of(basis.data(), h, d, kernels, pool);
    CHECK(orthogonality_error <= trawl::kMaxOrthogonalityError);
    const trawl::PrefilterCoder coder(*file, basis.data(), h, orthogonality_error, kernels);
    trawl::PrefilterCoder::Scratch scratch(coder);
    trawl::AlignedBuffer<int8_t> codes(data.n * h);
    std::vector<trawl::PrefilterStats> stats(data.n);
    for (int64_t i = 0; i < data.n; ++i) {
      const float* row = data.row(i);
      coder.encode(&row, 1, codes.data() + i * h, &stats[i], scratch);
      coder.load(&row, 1, scratch);
      CHECK_EQUAL(coder.check(0, codes.data() + i * h, stats[i], scratch), std::string());
    }
    const trawl::PrefilterPacker packer(pack_mean, basis.data(), h, orthogonality_error, trawl::kSignSeed, kernels);
    std::vector<double> query(d), rotated(h);
    trawl::AlignedBuffer<int8_t> digits[2] = {trawl::AlignedBuffer<int8_t>(h), trawl::AlignedBuffer<int8_t>(h)};
    for (int64_t q = 0; q < queries.n; ++q) {
      double square = 0;
      for (int64_t j = 0; j < d; ++j) square += static_cast<double>(queries.row(q)[j]) * queries.row(q)[j];
      for (int64_t j = 0; j < d; ++j) {
        query[j] = metric == Metric::kCosine && square > 0 ? queries.row(q)[j] / std::sqrt(square) : queries.row(q)[j];
      }
      trawl::QueryBound bounds[2];
      packer.prepare(query.data(), 1, rotated.data(), {{127, digits[0].data(), &bounds[0]}, {32, digits[1].data(), &bounds[1]}});
      for (int64_t i = 0; i < data.n; ++i) {
        const double tau = internal(metric, score(metric, queries.row(q), data.row(i), d));
        alignas(64) float scale16[16] = {}, rest16[16] = {}, size16[16] = {}, bias16[16] = {};
        alignas(64) int32_t sum16[16] = {};
        scale16[0] = stats[i].scale_f32, rest16[0] = stats[i].residual_f32, size16[0] = stats[i].size_f32, bias16[0] = stats[i].bias_f32;
        const trawl::CodeRows view = {
            .codes_i8 = codes.data() + i * h,
            .padded = h,
            .rows = 1,
            .scale_f32 = scale16,
            .residual_f32 = rest16,
            .test_norm_f32 = size16,
            .bias_f32 = bias16,
            .code_sum_i32 = sum16,
            .first_pass = true,
        };
        trawl::Hit hit;
        for (int form = 0; form < 2; ++form) {
          const float theta = bounds[form].theta(tau);
          const trawl::QueryTest test = {&bounds[form].phi_f32, &bounds[form].test_a_f32, &bounds[form].test_n_f32, &theta};
          ++tally.pairs;
          tally.finite += std::isfinite(theta) && std::isfinite(stats[i].residual_f32);
          if (trawl::kSerialKernels->scan_rows(view, digits[form].data(), 1, test, &hit) != 1) {
            check::fail(
                __FILE__, __LINE__,
                "the prefilter drops row " + std::to_string(i) + " for query " + std::to_string(q) + " at the threshold of its own score");
          }
        }
      }
    }
  }
}

std::vector<float> mean_of(const Data& data) {
  std::vector<double> sum(data.d, 0);
  for (int64_t i = 0; i < data.n; ++i) {
    for (int64_t j = 0; j < data.d; ++j) sum[j] += data.row(i)[j] / static_cast<double>(data.n);
  }
  return std::vector<float>(sum.begin(), sum.end());
}

std::vector<std::pair<std::string, Data>> adversarial(int64_t d) {
  const int64_t n = check::small() ? 12 : 24;
  std::vector<std::pair<std::string, Data>> sets;
  const auto add = [&](const char* name, const std::function<float(int64_t, int64_t, std::mt19937&)>& value) {
    std::mt19937 random(static_cast<uint32_t>(sets.size()));
    Data data{n, d, std::vector<float>(n * d)};
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < d; ++j) data.row(i)[j] = value(i, j, random);
    }
    sets.push_back({name, std::move(data)});
  };
  const auto normal = [](std::mt19937& random) { return std::normal_distribution<float>()(random); };
  add("gaussian", [&](auto, auto, auto& r) { return normal(r); });
  add("ternary", [&](auto, auto, auto& r) { return static_cast<float>(static_cast<int>(r() % 3) - 1); });
  add("constant over j", [&](auto i, auto, auto&) { return static_cast<float>(i) - 7; });
  add("all equal", [&](auto, auto j, auto&) { return std::sin(static_cast<float>(j)); });
  add("zero", [&](auto, auto, auto&) { return 0.0f; });
  add("one outlier dimension", [&](auto, auto j, auto& r) { return normal(r) * (j == 3 % d ? 1e4f : 1.0f); });
  add("outlier mean", [&](auto, auto j, auto& r) { return normal(r) + (j == 0 ? 1e5f : 0.0f); });
  add("spread 1e-7 of the mean", [&](auto, auto j, auto& r) { return std::cos(static_cast<float>(j)) * (1 + 1e-7f * normal(r)); });
  add("one ulp around 1", [&](auto, auto, auto& r) { return 1.0f + static_cast<float>(static_cast<int>(r() % 3) - 1) * 0x1p-23f; });
  add("norms 1e-30 to 1e30", [&](auto i, auto, auto& r) { return normal(r) * std::pow(10.0f, static_cast<float>(i % 13) * 5 - 30); });
  add("coordinates 2^-120 to 2^120", [&](auto, auto, auto& r) { return std::ldexp(normal(r), static_cast<int>(r() % 241) - 120); });
  add("denormals", [&](auto, auto, auto& r) { return 0x1p-149f * static_cast<float>(r() % 100); });
  add("largest floats", [&](auto, auto, auto& r) { return (r() % 2 ? 1 : -1) * std::numeric_limits<float>::max(); });
  add("tiny 1e-37", [&](auto, auto, auto& r) { return 1e-37f * normal(r); });
  add("huge 1e37", [&](auto, auto, auto& r) { return 1e37f * normal(r); });
  add("one-hot", [&](auto i, auto j, auto&) { return j == i % d ? 1.0f : 0.0f; });
  add("antipodes", [&](auto i, auto j, auto&) { return (i % 2 ? -1 : 1) * std::sin(static_cast<float>(j + i / 2)); });
  add("cancelling halves",
      [&](auto i, auto j, auto& r) { return j < d / 2 ? 1e6f + static_cast<float>(r() % 7) : -1e6f + static_cast<float>(i % 5); });
  return sets;
}

}  // namespace

TEST("certificate: bounds hold for every pair of adversarial rows and queries, all metrics, three means") {
  Tally tally, prefiltered;
  for (const int64_t d : {1, 2, 63, 64, 100, 256}) {
    const auto sets = adversarial(d);
    for (const auto& [name, data] : sets) {
      for (const Metric metric : kMetrics) {
        for (int choice = 0; choice < 3; ++choice) {
          std::vector<float> mean(d, 0.0f);
          if (choice == 1) mean = mean_of(data);
          if (choice == 2) mean = mean_of(sets[5].second);  // the mean of other rows
          if (check::small() && choice == 2) continue;
          Data queries{6, d, std::vector<float>(6 * d, 0.0f)};
          for (int64_t j = 0; j < d; ++j) {
            queries.row(0)[j] = data.row(0)[j];
            queries.row(1)[j] = -data.row(1)[j];
            queries.row(3)[j] = mean[j] * 0.5f;  // zero after centring
            queries.row(4)[j] = j == 0 ? 1.0f : 0.0f;
            queries.row(5)[j] = sets[0].second.row(2)[j];  // row 2 stays zero
          }
          try {
            check_pairs(metric, data, queries, mean, tally);
            if (d == 64 || d == 100) check_prefilter(metric, data, queries, mean, 64, prefiltered);
            if (d == 256 && choice == 1) check_prefilter(metric, data, queries, mean, 192, prefiltered);
          } catch (const std::exception& error) {
            throw std::runtime_error(name + ", " + trawl::metric_name(metric) + ", d " + std::to_string(d) + ", mean " +
                                     std::to_string(choice) + ": " + error.what());
          }
        }
      }
    }
  }
  CHECK(tally.pairs > 10000 && tally.finite > tally.pairs / 2);
  CHECK(prefiltered.pairs > 10000 && prefiltered.finite > prefiltered.pairs / 2);
}

TEST("certificate: rows and queries outside the prefilter's components attain its bound") {
  // The first 64 coordinates are zero, so the codes are zero, and the score is the largest product of two residuals.
  Tally tally;
  for (const Metric metric : kMetrics) {
    Data data = gaussian(40, 128, 78);
    for (int64_t i = 0; i < data.n; ++i) std::fill(data.row(i), data.row(i) + 64, 0.0f);
    Data queries = data;
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < 128; ++j) queries.row(i)[j] *= -0.37f;
    }
    check_prefilter(metric, data, queries, std::vector<float>(128, 0.0f), 64, tally);
    check_prefilter(metric, data, queries, mean_of(data), 64, tally);
  }
  CHECK(tally.finite == tally.pairs);
}

TEST("certificate: for rows that the codes represent exactly, the rounding terms cover the rounding errors") {
  // Rows W'c for whole-number c: the codes are c and the residual is zero, so only kappa and eta cover the difference of E and S.
  // W = H*signs and H is its own inverse, so W'c = signs*(H*c) = signs * rotation(signs * c). Every coordinate is a multiple of
  // 1/16 below 2^11, and so a float32.
  const int64_t d = 256;
  const trawl::Rotation rotation(d, trawl::kSignSeed);
  std::vector<double> signs(d);
  for (int64_t j = 0; j < d; ++j) {
    std::vector<double> unit(d, 0.0);
    unit[j] = 1;
    rotation.apply(unit.data());
    signs[j] = unit[0] < 0 ? -1 : 1;
  }
  Tally tally;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Data data{8, d, std::vector<float>(8 * d)};
    for (int64_t i = 0; i < 8; ++i) {
      std::vector<double> codes(d);
      for (double& c : codes) c = static_cast<double>(static_cast<int>(random() % 255) - 127);
      codes[0] = 127;
      for (int64_t j = 0; j < d; ++j) codes[j] *= signs[j];
      rotation.apply(codes.data());
      for (int64_t j = 0; j < d; ++j) data.row(i)[j] = static_cast<float>(signs[j] * codes[j]);
    }
    const std::vector<float> zero(d, 0.0f);
    const Coded coded(Metric::kInnerProduct, data, zero);
    for (const trawl::RowStats& row : coded.stats) {
      CHECK(row.scale_f32 == 1 && row.residual_f32 <= row.norm_f32 * 0x1p-47f && row.residual_f32 >= row.norm_f32 * 0x1.fffp-49f);
    }
    Data queries = gaussian(4, d, 100 + seed, 3.0f);
    for (int64_t j = 0; j < d; ++j) queries.row(1)[j] = (j % 2 ? -1e6f : 1e6f) + queries.row(1)[j];
    for (const Metric metric : kMetrics) check_pairs(metric, data, queries, zero, tally);
  }
  // A norm that is a float32 is rounded up, because the sum of squares could have lost something.
  Data five{1, 64, std::vector<float>(64, 0.0f)};
  five.row(0)[0] = 3, five.row(0)[1] = 4;
  CHECK_EQUAL(Coded(Metric::kInnerProduct, five, std::vector<float>(64, 0.0f)).stats[0].norm_f32, std::nextafter(5.0f, 6.0f));
  // Two halves of opposite sign cancel, so the score is the rounding error of the sum.
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Data data = gaussian(8, d, seed);
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = d / 2; j < d; ++j) data.row(i)[j] = -data.row(i)[j - d / 2];
    }
    Data queries = gaussian(4, d, 50 + seed);
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t j = d / 2; j < d; ++j) queries.row(q)[j] = queries.row(q)[j - d / 2];
    }
    check_pairs(Metric::kInnerProduct, data, queries, mean_of(data), tally);
  }
  // The values of a rotated one-hot row have the same size, so the codes are whole numbers and the residual is zero.
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Data data{4, 64, std::vector<float>(4 * 64)};
    for (int64_t i = 0; i < 4; ++i) {
      const float value = std::normal_distribution<float>()(random);
      for (int64_t j = 0; j < 64; ++j) data.row(i)[j] = j == i ? value : 0.0f;
    }
    Data queries = gaussian(6, 64, 500 + seed);
    check_pairs(Metric::kInnerProduct, data, queries, std::vector<float>(64, 0.0f), tally);
  }
}

TEST("certificate: a query in the direction of the quantisation error attains the bound") {
  // For q ~ x - s*W'c, S - E equals |q|*|x - s*W'c| up to 1e-10, so a residual rounded to nearest is too small.
  const int64_t d = 256;
  const Data data = gaussian(400, d, 77);
  const std::vector<float> zero(d, 0.0f);
  const Coded coded(Metric::kInnerProduct, data, zero);
  const trawl::Rotation rotation(d, trawl::kSignSeed);
  double tightest = 2;
  Tally tally;
  for (int64_t i = 0; i < data.n; ++i) {
    std::vector<double> lost(data.row(i), data.row(i) + d);
    rotation.apply(lost.data());
    for (int64_t j = 0; j < d; ++j) lost[j] -= static_cast<double>(coded.stats[i].scale_f32) * coded.codes[i * d + j];
    // The inverse rotation: W e_j is column j of W, so W' v = (v . W e_j)_j.
    Data one{1, d, std::vector<float>(data.row(i), data.row(i) + d)}, query{1, d, std::vector<float>(d)};
    static std::vector<double> columns;
    if (columns.empty()) {
      columns.assign(d * d, 0.0);
      for (int64_t j = 0; j < d; ++j) {
        columns[j * d + j] = 1;
        rotation.apply(columns.data() + j * d);
      }
    }
    for (int64_t j = 0; j < d; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < d; ++k) sum += lost[k] * columns[j * d + k];
      query.values[j] = static_cast<float>(sum);
    }
    check_pairs(Metric::kInnerProduct, one, query, zero, tally);
    double lost_square = 0;
    for (int64_t j = 0; j < d; ++j) lost_square += lost[j] * lost[j];
    tightest = std::min(tightest, coded.stats[i].residual_f32 / std::sqrt(lost_square));
  }
  CHECK(tightest >= 1 && tightest < 1 + 1e-7);
}

TEST("certificate: at dimension 131072 the integer sums do not overflow and the bounds hold") {
  const int64_t d = check::small() ? 4096 : 131072;
  Data data = gaussian(3, d, 1);
  // Rows and queries whose rotated values all have the same size have the largest possible integer sums.
  for (int64_t j = 0; j < d; ++j) data.row(1)[j] = j % 256 == 0 ? 1.0f : 0.0f;
  for (int64_t j = 0; j < d; ++j) data.row(2)[j] = -data.row(1)[j];
  Tally tally;
  for (const Metric metric : kMetrics) check_pairs(metric, data, data, std::vector<float>(d, 0.0f), tally);
  trawl::ThreadPool pool(2);
  const Data all = gaussian(40, d, 2);
  const auto built = build(Metric::kInnerProduct, all, pool);
  trawl::SearchOptions options;
  options.k = 3;
  for (const trawl::IsaStatus& isa : trawl::list_isas()) {
    if (!isa.available) continue;
    options.kernels = &trawl::choose_kernels(isa.name);
    CHECK_SEARCH(*built->index, all, data, options, pool);
  }
}
