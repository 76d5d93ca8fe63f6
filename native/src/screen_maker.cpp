#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "codes_format.hpp"
#include "float_environment.hpp"
#include "rounding.hpp"
#include "scan_codes.hpp"
#include "screen_codes.hpp"
#include "screen_format.hpp"
#include "trawl/error.hpp"
#include "trawl/isa.hpp"

namespace trawl {

namespace {

constexpr int64_t kFewestRows = 16384;     // below that a pass over the codes takes less than a millisecond
constexpr int64_t kBasisRows = 6144;       // rows that the directions are taken from
constexpr int64_t kTrialRows = 4096;       // rows that a choice is tried on
constexpr int64_t kTrialQueries = 64;      // rows that stand for queries there
constexpr int64_t kMostChosen = 512;
// What a row costs that the screen could not drop, in rows of codes scanned: its codes come from memory out of turn.
constexpr double kSettleCost = 150;
constexpr double kWorthIt = 0.75;          // of the cost without a screen

// The file under construction: removed unless it was finished.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("cannot create");
  }
  ~NewFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    std::remove(path_.c_str());
  }
  void write_at(int64_t position, const void* data, int64_t bytes) const {
    const auto* p = static_cast<const uint8_t*>(data);
    while (bytes > 0) {
      const ssize_t wrote = ::pwrite(fd_, p, bytes, position);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) fail("cannot write");
      p += wrote;
      position += wrote;
      bytes -= wrote;
    }
  }
  void finish() {
    if (::fsync(fd_) != 0) fail("cannot sync");
    ::close(fd_);
    fd_ = -1;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorCode::kIo, path_ + ": " + what + ": " + std::strerror(errno));
  }
  std::string path_;
  int fd_ = -1;
};

// `count` rows spread evenly over all, starting `shift` of the way to the next: centred, as float32.
// Rows too large for the row test are left out of the picture as zeros.
std::vector<float> sample_rows(const RowCoder& coder, const Rows& rows, int64_t count, double shift, ThreadPool& pool) {
  const int64_t d = rows.dimension();
  std::vector<float> sample(count * d);
  // A row that is touched brings its neighbours along, 64 KB or so.
  const int64_t around = 65536 / rows.row_bytes() + 1;
  pool.run((count + 63) / 64, [&](int64_t item) {
    std::vector<float> row(d);
    AlignedBuffer<double> difference(coder.padded());
    for (int64_t i = item * 64; i < std::min(count, item * 64 + 64); ++i) {
      const auto at = static_cast<int64_t>((static_cast<double>(i) + shift) * static_cast<double>(rows.rows()) / static_cast<double>(count));
      const int64_t taken = std::min(at, rows.rows() - 1), from = std::max(taken - around, int64_t{0});
      rows.copy_row(taken, row.data());
      rows.release(from, std::min(taken + around + 1, rows.rows()) - from);
      if (first_not_finite(row.data(), d) >= 0) continue;
      const RowCoder::Centred centred = coder.centre(row.data(), difference.data());
      if (!(centred.norm_f64 <= kCarefulNorm)) continue;
      for (int64_t j = 0; j < d; ++j) sample[i * d + j] = static_cast<float>(difference[j]);
    }
  });
  return sample;
}

double dot_f64(const float* a, const float* b, int64_t count) {
  double sum[8] = {};
  const int64_t whole = count / 8 * 8;
  for (int64_t j = 0; j < whole; j += 8) {
    for (int lane = 0; lane < 8; ++lane) sum[lane] += static_cast<double>(a[j + lane]) * b[j + lane];
  }
  for (int64_t j = whole; j < count; ++j) sum[0] += static_cast<double>(a[j]) * b[j];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

struct Choice {
  int64_t directions;  // 0: a screen does not pay
  std::string reason;
};

// Rows of the sample stand for queries: how many of the others would the bound keep at the score of the best, and of the
// tenth? What that says of the tenth among all rows follows a power law, well enough for a choice.
Choice choose(const CodesFile& codes, const Rows& rows, const RowCoder& coder, const std::vector<float>& basis,
              int64_t most, const Kernels& kernels, ThreadPool& pool) {
  const int64_t d = rows.dimension(), candidates = most / 64;
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
  const std::vector<float> along = coordinates(sample), query_along = coordinates(queries);
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
    // The query is a row, so less its share of the mean it is all but the centred row: alpha is 1 or close to it.
    const float* query = queries.data() + q * d;
    const double query_square = dot_f64(query, query, d);
    const double alpha = is_l2 || mean_square == 0 ? 1 : 1 + dot_f64(query, mean.data(), d) / mean_square;
    const double share = is_l2 || mean_square == 0 ? 0 : alpha - 1;  // of the mean, still to be taken off the query
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
      const float* mine = query_along.data() + q * most + c * 64;
      query_length += dot_f64(mine, mine, 64);
      const double query_rest = std::sqrt(std::fmax(query_square - query_length, 0.0));
      for (int64_t i = 0; i < kTrialRows; ++i) {
        const float* theirs = along.data() + i * most + c * 64;
        inside[i] += dot_f64(mine, theirs, 64);
        row_length[i] += dot_f64(theirs, theirs, 64);
        const double rest = std::sqrt(std::fmax(square[i] - row_length[i], 0.0));
        // Two planes of int8 lose about 0.7 % each.
        const double upper = alpha * bias[i] + inside[i] + query_rest * rest + 0.015 * std::sqrt(query_length * row_length[i]);
        kept_first[c * kTrialQueries + q] += upper >= sorted[0];
        kept_tenth[c * kTrialQueries + q] += upper >= sorted[9];
      }
    }
  });

  const auto padded = static_cast<double>(codes.padded()), all = static_cast<double>(rows.rows());
  Choice best = {0, ""};
  double best_cost = 0, best_share = 0;
  for (int64_t c = 0; c < candidates; ++c) {
    const auto mean_of = [&](const std::vector<int64_t>& kept) {
      const int64_t sum = std::accumulate(kept.begin() + c * kTrialQueries, kept.begin() + (c + 1) * kTrialQueries, int64_t{0});
      return static_cast<double>(sum) / static_cast<double>(kTrialQueries * kTrialRows);
    };
    const double first = mean_of(kept_first), tenth = mean_of(kept_tenth);
    const double slope = first > 0 ? std::fmin(1.0, std::fmax(0.0, std::log10(tenth / first))) : 1.0;
    const double kept = std::fmin(1.0, tenth * std::pow(static_cast<double>(kTrialRows) / all, slope));
    const auto directions = static_cast<double>(64 * (c + 1));
    const double cost = (directions + 16) / (padded + 16) + kSettleCost * kept;
    if (c == 0 || cost < best_cost) best_cost = cost, best_share = kept, best.directions = 64 * (c + 1);
  }
  char text[200];
  std::snprintf(text, sizeof text, "%lld directions would keep about %.2g %% of the rows: %.0f %% of a pass over the codes",
                static_cast<long long>(best.directions), 100 * best_share, 100 * best_cost);
  best.reason = text;
  if (best_cost > kWorthIt) best.directions = 0;
  return best;
}

}  // namespace

ScreenResult make_screen(const std::string& path, const CodesFile& codes, const Rows& rows,
                         const ScreenOptions& options, ThreadPool& pool, const std::atomic<bool>* cancel) {
  const FloatEnvironment environment;
  const int64_t d = codes.dimension(), n = codes.rows();
  if (n != rows.rows() || d != rows.dimension()) {
    throw Error(ErrorCode::kBadFile, "codes are " + std::to_string(n) + " x " + std::to_string(d) + ", rows are " +
                                         std::to_string(rows.rows()) + " x " + std::to_string(rows.dimension()));
  }
  int64_t h = options.directions;
  if (h != 0) {
    const std::string shape = check_screen_shape(d, h);
    if (!shape.empty()) throw Error(ErrorCode::kBadArgument, shape);
  } else {
    if (d > kMaxScreenDimension) return {0, "dimension " + std::to_string(d) + " is above " + std::to_string(kMaxScreenDimension)};
    if (d <= 128) return {0, "the codes of " + std::to_string(d) + " dimensions are as short as a screen would be"};
    if (n < kFewestRows) return {0, std::to_string(n) + " rows are too few for a screen to pay"};
  }
  const Kernels& kernels = select_kernels();
  const RowCoder coder(codes.metric(), codes.mean(), codes.sign_seed());
  const int64_t most = h != 0 ? h : std::min<int64_t>(kMostChosen, (d - 1) / 64 * 64 * 3 / 4 / 64 * 64);
  const std::vector<float> sample = sample_rows(coder, rows, std::min(n, kBasisRows), 0, pool);
  check_cancelled(cancel);
  std::vector<float> basis;
  if (n > 0) basis = leading_directions(sample.data(), std::min(n, kBasisRows), d, most, kernels, pool);
  check_cancelled(cancel);
  if (basis.empty()) {
    if (h == 0) return {0, "the rows do not vary"};
    basis.assign(h * d, 0.0f);
    for (int64_t i = 0; i < h; ++i) basis[i * d + i] = 1;
  }
  std::string reason = "asked for";
  if (h == 0) {
    const Choice choice = choose(codes, rows, coder, basis, most, kernels, pool);
    if (choice.directions == 0) return {0, choice.reason};
    h = choice.directions;
    reason = choice.reason;
  }
  // Dealt out over the blocks of the turn, so that each block has its share of the long ones and one scale fits all.
  const int64_t blocks_of_turn = h % 256 == 0 ? h / 256 : h / 64, in_block = h / blocks_of_turn;
  std::vector<float> dealt(h * d);
  for (int64_t i = 0; i < h; ++i) {
    const int64_t at = i % blocks_of_turn * in_block + i / blocks_of_turn;
    std::copy(basis.data() + i * d, basis.data() + (i + 1) * d, dealt.data() + at * d);
  }
  const double defect = directions_defect(dealt.data(), h, d, kernels, pool);
  if (!(defect <= kMaxScreenDefect)) return {0, "no orthonormal directions were found"};

  const ScreenHeader header = make_screen_header(codes, h, defect, dealt);
  NewFile file(path);
  {
    std::vector<uint8_t> bytes(header.header_bytes, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, dealt.data(), dealt.size() * 4);
    file.write_at(0, bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  const ScreenCoder screen_coder(codes, dealt.data(), h, defect, kernels);
  const int64_t per_block = codes.rows_per_block();
  const ScreenBlockLayout layout(per_block, h);
  rows.advise_sequential();
  pool.run(codes.blocks(), [&](int64_t index) {
    check_cancelled(cancel);
    ScreenCoder::Scratch scratch(screen_coder);
    std::vector<float> held(kProjectRows * d);
    AlignedBuffer<uint8_t> block(layout.bytes);
    const int64_t first = index * per_block, count = std::min(per_block, n - first);
    for (int64_t i = 0; i < count; i += kProjectRows) {
      const int here = static_cast<int>(std::min<int64_t>(kProjectRows, count - i));
      const float* pointers[kProjectRows] = {};
      for (int r = 0; r < here; ++r) {
        rows.copy_row(first + i + r, held.data() + r * d);
        pointers[r] = held.data() + r * d;
        const int64_t column = first_not_finite(pointers[r], d);
        if (column < 0) continue;
        throw Error(ErrorCode::kNotFinite, "row " + std::to_string(first + i + r) + " is NaN or infinite at column " + std::to_string(column),
                    first + i + r, column);
      }
      ScreenStats stats[kProjectRows];
      screen_coder.encode(pointers, here, reinterpret_cast<int8_t*>(block.data() + i * h), stats, scratch);
      for (int r = 0; r < here; ++r) {
        std::memcpy(block.data() + layout.scale + 4 * (i + r), &stats[r].scale_f32, 4);
        std::memcpy(block.data() + layout.rest + 4 * (i + r), &stats[r].rest_f32, 4);
        std::memcpy(block.data() + layout.size + 4 * (i + r), &stats[r].size_f32, 4);
        std::memcpy(block.data() + layout.code_sum + 4 * (i + r), &stats[r].code_sum_i32, 4);
        std::memcpy(block.data() + layout.bias + 4 * (i + r), &stats[r].bias_f32, 4);
      }
    }
    CodesBlockTail tail = {};
    tail.rows = count;
    tail.checksum = screen_block_checksum(block.data(), layout, tail.rows);
    std::memcpy(block.data() + layout.tail, &tail, sizeof tail);
    file.write_at(static_cast<int64_t>(header.header_bytes) + index * layout.bytes, block.data(), layout.bytes);
    rows.release(first, count);
  });
  rows.advise_random();
  const CodesFooter footer = make_codes_footer(n, codes.blocks());
  file.write_at(static_cast<int64_t>(header.header_bytes) + codes.blocks() * layout.bytes, &footer, sizeof footer);
  file.finish();
  return {h, reason};
}

}  // namespace trawl
