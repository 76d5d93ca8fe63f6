// The numbers of queries and rows are those of docs/certificate.md and certificate-notes.md, term by term: at least what the proof needs,
// and not noticeably more. Adversarial data cannot show every term, because the proof's bounds are seldom attained.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/aligned_buffer.hpp"
#include "dense/codes/query_pack.hpp"
#include "dense/kernels/kernels.hpp"
#include "dense/prefilter/prefilter_codes.hpp"
#include "dense/search/prepared_rows.hpp"
#include "oracle.hpp"

using namespace oracle;

namespace {

constexpr double kRho = 0x1p-20, kEtaOfProof = 0x1p-48, kQueryZeta = 0x1p-33, kRowZeta = 0x1p-23, kTinyZeta = 0x1p-139;
// The proof's numbers in float64, rounded up to float32 and with a few float64 roundings.
constexpr double kFloatSlack = 0x1p-22, kDoubleSlack = 1e-11;

double norm(const double* values, int64_t count) {
  long double square = 0;
  for (int64_t j = 0; j < count; ++j) square += static_cast<long double>(values[j]) * values[j];
  return static_cast<double>(std::sqrt(square));
}

#define CHECK_COVERS(actual, needed, slack)                                             \
  do {                                                                                  \
    const double covers_a = (actual), covers_n = (needed);                              \
    if (!(covers_a >= covers_n && covers_a <= covers_n * (1 + (slack)) + 1e-40)) {      \
      std::ostringstream covers_text;                                                   \
      covers_text.precision(17);                                                        \
      covers_text << #actual << " is " << covers_a << ", the proof needs " << covers_n; \
      check::fail(__FILE__, __LINE__, covers_text.str());                               \
    }                                                                                   \
  } while (0)

// A codes file with this mean, because a PackMean needs one.
std::shared_ptr<const trawl::CodesFile> file_with(Metric metric, const std::vector<float>& mean) {
  TempDir directory;
  trawl::ThreadPool pool(1);
  trawl::CodesWriterOptions options;
  options.mean_f32 = mean;
  const std::string path = directory.file();
  trawl::CodesWriter writer(path, metric, static_cast<int64_t>(mean.size()), options);
  writer.finish(pool);
  return trawl::CodesFile::open(path);
}

// The letters of the proof for one query, after its digits are known.
struct Letters {
  Letters(Metric metric, const std::vector<double>& query, const std::vector<float>& mean, int64_t padded, double alpha)
      : kappa(std::ldexp(static_cast<double>(padded + 32), -52)),
        l2(metric == Metric::kSquaredL2),
        unit(metric == Metric::kCosine ? kappa : 0),
        alpha(alpha) {
    const std::vector<double> mean_f64(mean.begin(), mean.end());
    const auto d = static_cast<int64_t>(query.size());
    g = norm(query.data(), d);
    m = norm(mean_f64.data(), d);
    centred.assign(padded, 0.0);
    for (int64_t j = 0; j < d; ++j) centred[j] = query[j] - alpha * mean_f64[j];
    q = norm(centred.data(), padded);
    c = l2 ? 2 * kappa * q * q : 2 * kappa * g * m + 2 * unit;
  }
  // What multiplies n among the rounding terms, for digits of length p.
  double rounding(double p) const { return l2 ? 2 * kappa * p : kappa * (g + std::fabs(alpha) * m + 2 * p); }

  double kappa;
  bool l2;
  double unit, alpha, g, m, q, c;
  std::vector<double> centred;
};

// |phi| m as the row's second number has to cover it: the rounding of phi*beta, or all of it if phi vanishes.
double share_of_phi(const Letters& of, double phi) {
  if (of.l2) return 0;
  return (std::fabs(phi) < 0x1p-60 ? kRho + 2 : kRho) * std::fabs(phi) * of.m;
}

void check_theta(const trawl::QueryBound& bound, const Letters& of, const std::vector<double>& taus) {
  for (const double tau : taus) {
    const double lost = kEtaOfProof * (std::fabs(tau) + std::fabs(bound.offset_f64) + of.c);
    const double limit =
        (tau - bound.offset_f64 - of.c - lost) / bound.step_f64 - 0x1p-120 * (1 + std::fabs(static_cast<double>(bound.phi_f32)));
    const double slack = 1e-12 * (std::fabs(tau) + std::fabs(bound.offset_f64)) / bound.step_f64;
    CHECK(bound.theta(tau) <= limit + slack * 1e-6);
  }
}

struct Case {
  std::vector<float> mean;
  std::vector<double> query;
};

// A usual query; one nearly parallel to the mean; one nearly orthogonal to a long mean, whose phi vanishes; none.
std::vector<Case> cases(int64_t d) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<Case> list(4, Case{std::vector<float>(d), std::vector<double>(d)});
  for (int64_t j = 0; j < d; ++j) {
    for (Case& each : list) each.mean[j] = normal(random), each.query[j] = normal(random);
    list[1].query[j] = 1e6 * list[1].mean[j] + 1e-3 * list[1].query[j];
    list[2].mean[j] = j == 0 ? 0x1p56f : 0.0f;
    if (j == 0) list[2].query[j] = 0x1p-14;
    list[3].query[j] = 0;
  }
  return list;
}

std::vector<double> unit(const std::vector<double>& query) {
  const double length = norm(query.data(), static_cast<int64_t>(query.size()));
  std::vector<double> out = query;
  for (double& value : out) value = length > 0 ? value / length : 0;
  return out;
}

}  // namespace

TEST("certificate: the numbers of a query for the codes cover every term of the proof") {
  const int64_t d = 100, padded = 128;
  for (const Metric metric : kMetrics) {
    for (const Case& each : cases(d)) {
      const std::vector<double> query = metric == Metric::kCosine ? unit(each.query) : each.query;
      const trawl::PackMean mean(metric, *file_with(metric, each.mean));
      std::vector<double> rotated(padded);
      std::vector<int8_t> digits[2] = {std::vector<int8_t>(padded), std::vector<int8_t>(padded)};
      trawl::QueryBound bounds[2];
      trawl::prepare_query(mean, query.data(), rotated.data(), {{127, digits[0].data(), &bounds[0]}, {32, digits[1].data(), &bounds[1]}});
      for (int form = 0; form < 2; ++form) {
        const trawl::QueryBound& bound = bounds[form];
        const Letters of(metric, query, each.mean, padded, bound.alpha_f64);
        // For z itself: p = |z|, and the error comes from the rotation. norm() of the centred query may differ by a few roundings.
        const double p = of.q * (1 + kEtaOfProof);
        CHECK_COVERS(bound.a_f64 * (1 + kDoubleSlack), p * (1 + of.kappa), 3 * kDoubleSlack);
        CHECK_COVERS(bound.b_f64 * (1 + kDoubleSlack), kEtaOfProof * of.q + of.unit + of.rounding(p), 3 * kDoubleSlack);
        CHECK_EQUAL(bound.b2_f64, of.l2 ? of.kappa : 0.0);
        CHECK_COVERS(bound.c_f64 * (1 + kDoubleSlack), of.c, 3 * kDoubleSlack);
        if (!bound.testable) continue;
        const double t = bound.step_f64, phi = of.alpha / t;
        std::vector<double> h(padded), lost(padded);
        for (int64_t j = 0; j < padded; ++j) h[j] = t * digits[form][j], lost[j] = rotated[j] - h[j];
        const double length = norm(h.data(), padded), error = norm(lost.data(), padded) + kEtaOfProof * of.q;
        CHECK_COVERS(bound.test_a_f32, (length / t + kRho * length / t) * (1 + kRho) * (1 - kDoubleSlack), kFloatSlack);
        const double b = (error + of.unit + of.rounding(length)) / t;
        CHECK_COVERS(bound.test_n_f32, (b + kRho * length / t + share_of_phi(of, phi)) * (1 + kRho) * (1 - kDoubleSlack), kFloatSlack);
        CHECK(bound.phi_f32 == (std::fabs(phi) < 0x1p-60 ? 0.0f : static_cast<float>(phi)));
        check_theta(bound, of, {0.0, 1e-30, 0.1, -0.1, of.g, of.g * of.m, bound.offset_f64 + of.c});
      }
    }
  }
}

TEST("certificate: the numbers of a query for the prefilter cover every term of the proof") {
  const int64_t d = 128, h = 64;
  const trawl::Kernels& kernels = trawl::select_kernels();
  const double delta = 0x1p-11;
  std::vector<float> basis(h * d, 0.0f);
  for (int64_t i = 0; i < h; ++i) basis[i * d + i] = 1;
  for (const Metric metric : kMetrics) {
    std::vector<Case> all = cases(d);
    // Inside the components, and outside.
    all.push_back(all[0]);
    std::fill(all.back().query.begin() + h, all.back().query.end(), 0.0);
    std::fill(all.back().mean.begin(), all.back().mean.end(), 0.0f);
    all.push_back(all[0]);
    std::fill(all.back().query.begin(), all.back().query.begin() + h, 0.0);
    for (const double orthogonality_error : {0.0, delta}) {
      for (const Case& each : all) {
        const std::vector<double> query = metric == Metric::kCosine ? unit(each.query) : each.query;
        const trawl::PackMean mean(metric, *file_with(metric, each.mean));
        const trawl::PrefilterPacker packer(mean, basis.data(), h, orthogonality_error, trawl::kSignSeed, kernels);
        std::vector<double> rotated(h);
        // With few digits the error of the coordinates decides, with many the length of the digits.
        trawl::AlignedBuffer<int8_t> digits(h);
        trawl::QueryBound bound;
        for (const int largest_digit : {127, 32}) {
          packer.prepare(query.data(), 1, rotated.data(), {{largest_digit, digits.data(), &bound}});
          if (!bound.testable) continue;
          const Letters of(metric, query, each.mean, d, bound.alpha_f64);
          const double t = bound.step_f64, phi = of.alpha / t, zeta = kQueryZeta * of.q;
          const double y = norm(of.centred.data(), h);
          const double residual = std::sqrt(std::max(0.0, of.q * of.q - (1 - orthogonality_error) * std::pow(std::max(0.0, y - zeta), 2)));
          std::vector<double> steps(h), lost(h);
          for (int64_t j = 0; j < h; ++j) steps[j] = t * digits[j], lost[j] = rotated[j] - steps[j];
          const double p = norm(steps.data(), h);
          const double error = norm(lost.data(), h) + kEtaOfProof * (y + zeta) + zeta + orthogonality_error * (y + zeta);
          const double k = of.rounding(p);
          // Pythagoras cancels, so its own rounding terms show when the query is inside the components.
          const double cancelled = residual > 0.1 * of.q ? kFloatSlack : 1e-3;
          CHECK_COVERS(bound.test_a_f32, ((residual + k) / t + share_of_phi(of, phi)) * (1 + kRho) * (1 - 1e-9), cancelled);
          const double second = std::max(p / 128, error + 1.01 * k) / t + kRho * p / t + 1.01 * share_of_phi(of, phi);
          CHECK_COVERS(bound.test_n_f32, second * (1 + kRho) * (1 - kDoubleSlack), kFloatSlack);
          check_theta(bound, of, {0.0, 1e-30, 0.1, -0.1, of.g});
        }
      }
    }
  }
}

TEST("certificate: the numbers of a row for the prefilter cover every term of the proof") {
  const int64_t d = 128, h = 64;
  const trawl::Kernels& kernels = trawl::select_kernels();
  std::vector<float> basis(h * d, 0.0f);
  for (int64_t i = 0; i < h; ++i) basis[i * d + i] = 1;
  for (const Metric metric : {Metric::kInnerProduct, Metric::kSquaredL2}) {
    const auto file = file_with(metric, std::vector<float>(d, 0.0f));
    for (const double orthogonality_error : {0.0, 0x1p-11}) {
      const trawl::PrefilterCoder coder(*file, basis.data(), h, orthogonality_error, kernels);
      trawl::PrefilterCoder::Scratch scratch(coder);
      Data data = gaussian(4, d, 31);
      std::fill_n(data.row(1) + h, h, 0.0f);
      std::fill_n(data.row(2), h, 0.0f);
      // Inside the components and short, so that the losses of subnormal coordinates show.
      for (int64_t j = 0; j < d; ++j) data.row(3)[j] = data.row(1)[j] * 0x1p-115f;
      for (int64_t i = 0; i < data.n; ++i) {
        trawl::AlignedBuffer<int8_t> codes(h);
        trawl::PrefilterStats stats;
        const float* const row = data.row(i);
        coder.encode(&row, 1, codes.data(), &stats, scratch);
        const std::vector<double> values(row, row + d);
        std::vector<double> coordinates(row, row + h);
        const double n = norm(values.data(), d), y = norm(coordinates.data(), h), zeta = kRowZeta * n + kTinyZeta;
        const double residual = std::sqrt(std::max(0.0, n * n - (1 - orthogonality_error) * std::pow(std::max(0.0, y - zeta), 2)));
        trawl::Rotation(h, trawl::kSignSeed).apply(coordinates.data());
        std::vector<double> lost(h);
        for (int64_t j = 0; j < h; ++j) lost[j] = coordinates[j] - static_cast<double>(stats.scale_f32) * codes[j];
        const double epsilon = norm(lost.data(), h) + kEtaOfProof * (y + zeta) + zeta;
        CHECK_COVERS(stats.residual_f32, residual * (1 - 1e-9), residual > 0.1 * n ? kFloatSlack : 1e-3);
        CHECK_COVERS(stats.size_f32, (y + zeta + 128 * epsilon) * (1 - 1e-9), kFloatSlack);
      }
    }
  }
}

TEST("certificate: the row test keeps a row whose three terms each lose half of the smallest float32") {
  const double unit = 0x1p-149;
  trawl::QueryBound bound = {};
  bound.step_f64 = 1;
  bound.testable = true;
  bound.phi_f32 = 0.75f;
  bound.test_a_f32 = bound.test_n_f32 = 1.49f * 0x1p-74f;
  alignas(64) int8_t codes[64] = {}, digits[64] = {};
  alignas(64) float scale[16] = {}, residual[16] = {}, norms[16] = {}, bias[16] = {};
  alignas(64) int32_t sums[16] = {};
  residual[0] = norms[0] = 0x1p-75f;
  bias[0] = static_cast<float>(-2 * unit);
  const trawl::CodeRows view = {
      .codes_i8 = codes,
      .padded = 64,
      .rows = 1,
      .scale_f32 = scale,
      .residual_f32 = residual,
      .test_norm_f32 = norms,
      .bias_f32 = bias,
      .code_sum_i32 = sums,
      .first_pass = true,
  };
  const float theta = bound.theta(1.47 * unit);  // the row reaches -1.5 + 2 * 1.49
  const trawl::QueryTest test = {&bound.phi_f32, &bound.test_a_f32, &bound.test_n_f32, &theta};
  trawl::Hit hit;
  CHECK_EQUAL(trawl::kSerialKernels->scan_rows(view, digits, 1, test, &hit), size_t{1});
}

TEST("certificate: rows whose row test could overflow float32 are replaced by rows that are always kept") {
  const trawl::PackMean mean(Metric::kInnerProduct, *file_with(Metric::kInnerProduct, std::vector<float>(64, 0.0f)));
  alignas(64) double bias[16] = {};
  alignas(64) float norms[16] = {}, residual[16] = {}, bias_f32[16], norm_f32[16];
  CHECK(trawl::prepare_rows(bias, norms, residual, 16, mean, bias_f32, norm_f32) == norms);
  const std::function<void()> too_large[] = {[&] { bias[5] = -0x1p121; }, [&] { bias[5] = 0x1p121; }, [&] { norms[5] = 0x1p61f; },
                                             [&] { residual[5] = 0x1p61f; }, [&] { norms[5] = std::numeric_limits<float>::infinity(); }};
  for (const auto& enlarge : too_large) {
    std::fill_n(bias, 16, 0.0);
    std::fill_n(norms, 16, 1.0f);
    std::fill_n(residual, 16, 1.0f);
    enlarge();
    const float* const prepared = trawl::prepare_rows(bias, norms, residual, 16, mean, bias_f32, norm_f32);
    for (int i = 0; i < 16; ++i) CHECK(i == 5 ? std::isinf(prepared[i]) && bias_f32[i] == 0 : prepared[i] == 1);
  }
}
