#include "dense/prefilter/prefilter_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "dense/codes/query_pack.hpp"
#include "dense/prefilter/principal_components.hpp"
#include "trawl/prefilter_file.hpp"

namespace trawl {

namespace {

constexpr int64_t kMinRows = 16384;      // a pass over the codes of fewer rows takes less than a millisecond
constexpr int64_t kTrialRows = 4096;     // rows in the trial
constexpr int64_t kTrialQueries = 64;    // rows that serve as queries in the trial
constexpr int64_t kMaxComponents = 512;  // more only if the caller requests them
// Reading the codes of a row that the prefilter keeps costs as much as scanning this many rows in order.
constexpr double kRefineCost = 150;
constexpr double kMaxRelativeCost = 0.75;  // highest cost of a search with a prefilter, relative to a search without one

double dot_f64(const float* a, const float* b, int64_t count) {
  double sum[8] = {};
  const int64_t whole = count / 8 * 8;
  for (int64_t j = 0; j < whole; j += 8) {
    for (int lane = 0; lane < 8; ++lane) sum[lane] += static_cast<double>(a[j + lane]) * b[j + lane];
  }
  for (int64_t j = whole; j < count; ++j) sum[0] += static_cast<double>(a[j]) * b[j];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

}  // namespace

PrefilterChoice limit_prefilter(int64_t rows, int64_t dimension) {
  if (dimension > kMaxPrefilterDimension) {
    return {0, "dimension " + std::to_string(dimension) + " is above " + std::to_string(kMaxPrefilterDimension)};
  }
  if (dimension <= 128) {
    return {0, "the codes of " + std::to_string(dimension) + " dimensions are as short as a prefilter would be"};
  }
  if (rows < kMinRows) return {0, std::to_string(rows) + " rows are too few: a prefilter would not be worthwhile"};
  return {std::min<int64_t>(kMaxComponents, (dimension - 1) / 64 * 64 * 3 / 4 / 64 * 64), ""};
}

std::vector<float> sample_rows(const RowCoder& coder, const Rows& rows, int64_t count, double shift, ThreadPool& pool) {
  const int64_t d = rows.dimension();
  std::vector<float> sample(count * d);
  // Reading a row also maps the pages around it, about 64 KB.
  const int64_t around = 65536 / rows.row_bytes() + 1;
  pool.run((count + 63) / 64, [&](int64_t item) {
    std::vector<float> row(d);
    AlignedBuffer<double> difference(coder.padded());
    for (int64_t i = item * 64; i < std::min(count, item * 64 + 64); ++i) {
      const auto at =
          static_cast<int64_t>((static_cast<double>(i) + shift) * static_cast<double>(rows.rows()) / static_cast<double>(count));
      const int64_t index = std::min(at, rows.rows() - 1), from = std::max(index - around, int64_t{0});
      rows.copy_row(index, row.data());
      rows.release(from, std::min(index + around + 1, rows.rows()) - from);
      if (first_not_finite(row.data(), d) >= 0) continue;
      const RowCoder::Centred centred = coder.centre(row.data(), difference.data());
      if (!(centred.norm_f64 <= kMaxTestableNorm)) continue;
      for (int64_t j = 0; j < d; ++j) sample[i * d + j] = static_cast<float>(difference[j]);
    }
  });
  return sample;
}

// Uses some rows as queries. For each number of components, counts the rows of the sample that the bound would keep if the
// threshold were the score of the best row or of the tenth, and extrapolates the counts to all rows with a power law.
PrefilterChoice choose_prefilter(const CodesFile& codes, const Rows& rows, const RowCoder& coder, const std::vector<float>& basis,
                                 int64_t max_components, const Kernels& kernels, ThreadPool& pool) {
  const int64_t d = rows.dimension(), most = max_components, candidates = most / 64;
  const std::vector<float> sample = sample_rows(coder, rows, kTrialRows, 0.5, pool);
  const std::vector<float> queries = sample_rows(coder, rows, kTrialQueries, 0.25, pool);
  const Panels panels(basis.data(), most, d);
  const auto coordinates = [&](const std::vector<float>& vectors) {
    const auto count = static_cast<int64_t>(vectors.size()) / d;
    std::vector<float> out(count * most);
    pool.run(count / kProjectRows, [&](int64_t item) {
      AlignedBuffer<double> wide(kProjectRows * d), sums(kProjectRows * most);
      for (int64_t i = 0; i < kProjectRows * d; ++i) wide[i] = vectors[item * kProjectRows * d + i];
      panels.project(kernels, wide.data(), sums.data());
      for (int64_t i = 0; i < kProjectRows * most; ++i) out[item * kProjectRows * most + i] = static_cast<float>(sums[i]);
    });
    return out;
  };
  const std::vector<float> row_coordinates = coordinates(sample), query_coordinates = coordinates(queries);
  const bool is_l2 = codes.metric() == Metric::kSquaredL2;
  std::vector<double> square(kTrialRows), bias(kTrialRows);
  const std::vector<float>& mean = codes.mean();
  for (int64_t i = 0; i < kTrialRows; ++i) {
    const float* row = sample.data() + i * d;
    square[i] = dot_f64(row, row, d);
    bias[i] = is_l2 ? -0.5 * square[i] : dot_f64(mean.data(), row, d);
  }
  std::vector<int64_t> kept_first(candidates * kTrialQueries), kept_tenth(candidates * kTrialQueries);
  const double mean_square = dot_f64(mean.data(), mean.data(), d);
  pool.run(kTrialQueries, [&](int64_t q) {
    // The query is a row, so its projection on the mean is about the mean: alpha is close to 1.
    const float* query = queries.data() + q * d;
    const double query_square = dot_f64(query, query, d);
    const double alpha = is_l2 || mean_square == 0 ? 1 : 1 + dot_f64(query, mean.data(), d) / mean_square;
    const double share = is_l2 || mean_square == 0 ? 0 : alpha - 1;  // `query` still contains this multiple of the mean
    std::vector<double> score(kTrialRows);
    for (int64_t i = 0; i < kTrialRows; ++i) {
      const float* row = sample.data() + i * d;
      score[i] = alpha * bias[i] + dot_f64(query, row, d) - share * dot_f64(mean.data(), row, d);
    }
    std::vector<double> sorted = score;
    std::partial_sort(sorted.begin(), sorted.begin() + 10, sorted.end(), std::greater<double>());
    std::vector<double> inside(kTrialRows, 0.0), row_length(kTrialRows, 0.0);
    double query_length = 0;
    for (int64_t c = 0; c < candidates; ++c) {
      const float* q_part = query_coordinates.data() + q * most + c * 64;
      query_length += dot_f64(q_part, q_part, 64);
      const double query_residual = std::sqrt(std::fmax(query_square - query_length, 0.0));
      for (int64_t i = 0; i < kTrialRows; ++i) {
        const float* row_part = row_coordinates.data() + i * most + c * 64;
        inside[i] += dot_f64(q_part, row_part, 64);
        row_length[i] += dot_f64(row_part, row_part, 64);
        const double residual = std::sqrt(std::fmax(square[i] - row_length[i], 0.0));
        // Quantisation to int8 loses about 0.7 % for rows and for queries.
        const double upper = alpha * bias[i] + inside[i] + query_residual * residual + 0.015 * std::sqrt(query_length * row_length[i]);
        kept_first[c * kTrialQueries + q] += upper >= sorted[0];
        kept_tenth[c * kTrialQueries + q] += upper >= sorted[9];
      }
    }
  });

  const auto padded = static_cast<double>(codes.padded()), all = static_cast<double>(rows.rows());
  PrefilterChoice best = {0, ""};
  double best_cost = 0, best_share = 0;
  for (int64_t c = 0; c < candidates; ++c) {
    const auto mean_of = [&](const std::vector<int64_t>& kept) {
      const int64_t sum = std::accumulate(kept.begin() + c * kTrialQueries, kept.begin() + (c + 1) * kTrialQueries, int64_t{0});
      return static_cast<double>(sum) / static_cast<double>(kTrialQueries * kTrialRows);
    };
    const double first = mean_of(kept_first), tenth = mean_of(kept_tenth);
    const double slope = first > 0 ? std::fmin(1.0, std::fmax(0.0, std::log10(tenth / first))) : 1.0;
    const double kept = std::fmin(1.0, tenth * std::pow(static_cast<double>(kTrialRows) / all, slope));
    const double cost = (static_cast<double>(64 * (c + 1)) + 16) / (padded + 16) + kRefineCost * kept;
    if (c == 0 || cost < best_cost) best_cost = cost, best_share = kept, best.components = 64 * (c + 1);
  }
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld principal components would keep about %.2g %% of the rows, at %.0f %% of the cost of a pass over the codes",
                static_cast<long long>(best.components), 100 * best_share, 100 * best_cost);
  best.reason = text;
  if (best_cost > kMaxRelativeCost) best.components = 0;
  return best;
}

}  // namespace trawl
