#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/aligned_buffer.hpp"
#include "base/float_environment.hpp"
#include "base/output_file.hpp"
#include "dense/codes/codes_format.hpp"
#include "dense/codes/row_codes.hpp"
#include "dense/kernels/score.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

constexpr int64_t kRowsPerItem = 32;  // rows that a thread encodes before it takes the next

// Mean of the first block, summed in row order, so that its bits depend only on the rows.
std::vector<float> mean_of(Metric metric, const float* rows, int64_t count, int64_t dimension) {
  std::vector<double> sum(dimension, 0.0);
  for (int64_t i = 0; i < count; ++i) {
    const float* row = rows + i * dimension;
    const double norm = metric == Metric::kCosine ? norm_in_order_f64(row, dimension) : 1.0;
    if (norm == 0) continue;
    for (int64_t j = 0; j < dimension; ++j) sum[j] += row[j] / norm;
  }
  std::vector<float> mean(dimension, 0.0f);
  for (int64_t j = 0; j < dimension && count > 0; ++j) mean[j] = static_cast<float>(sum[j] / static_cast<double>(count));
  return mean;
}

}  // namespace

struct CodesWriter::State {
  State(const std::string& path, Metric metric, int64_t dimension, int64_t rows_per_block)
      : file(path, OutputFile::Unfinished::kKeep),
        metric(metric),
        dimension(dimension),
        rows_per_block(rows_per_block),
        pending_f32(rows_per_block * dimension) {}

  OutputFile file;
  const Metric metric;
  const int64_t dimension, rows_per_block;
  std::vector<float> mean_f32;      // empty until the first block is complete
  std::unique_ptr<RowCoder> coder;  // made with the mean
  int64_t rows = 0;                 // rows appended
  int64_t blocks = 0;               // blocks written
  int64_t pending = 0;              // rows in pending_f32
  std::vector<float> pending_f32;
  bool finished = false;
  CodesIdentity identity{0};  // of the blocks written
  RowsChecksum rows_checksum;

  int64_t file_end() const {
    return static_cast<int64_t>(codes_header_bytes(dimension)) +
           blocks * CodesBlockLayout(rows_per_block, padded_dimension(dimension)).bytes;
  }

  void write_header() {
    if (mean_f32.empty()) mean_f32 = mean_of(metric, pending_f32.data(), pending, dimension);
    coder = std::make_unique<RowCoder>(metric, mean_f32, kSignSeed);
    const CodesHeader header = make_codes_header(metric, rows_per_block, mean_f32);
    std::vector<uint8_t> bytes(header.header_bytes, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, mean_f32.data(), mean_f32.size() * 4);
    identity = CodesIdentity(header.checksum);
    file.write_at(0, bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  void write_block(ThreadPool& pool) {
    if (blocks == 0) write_header();
    const int64_t padded = padded_dimension(dimension);
    const CodesBlockLayout layout(rows_per_block, padded);
    AlignedBuffer<uint8_t> block(layout.bytes);
    pool.run((pending + kRowsPerItem - 1) / kRowsPerItem, [&](int64_t item) {
      RowCoder::Scratch scratch(padded);
      const int64_t end = std::min(pending, (item + 1) * kRowsPerItem);
      for (int64_t i = item * kRowsPerItem; i < end; ++i) {
        const RowStats stats =
            coder->encode(pending_f32.data() + i * dimension, reinterpret_cast<int8_t*>(block.data() + i * padded), scratch);
        std::memcpy(block.data() + layout.scale + 4 * i, &stats.scale_f32, 4);
        std::memcpy(block.data() + layout.residual + 4 * i, &stats.residual_f32, 4);
        std::memcpy(block.data() + layout.norm + 4 * i, &stats.norm_f32, 4);
        std::memcpy(block.data() + layout.code_sum + 4 * i, &stats.code_sum_i32, 4);
        std::memcpy(block.data() + layout.bias + 8 * i, &stats.bias_f64, 8);
      }
    });
    CodesBlockTail tail = {};
    tail.rows = pending;
    tail.checksum = codes_block_checksum(block.data(), layout, tail.rows);
    std::memcpy(block.data() + layout.tail, &tail, sizeof tail);
    identity.add_block(tail);
    rows_checksum.add_block(RowsChecksum::of_block(pending_f32.data(), pending, dimension));
    file.write_at(file_end(), block.data(), layout.bytes);
    ++blocks;
    pending = 0;
  }
};

namespace {

void check_options(int64_t dimension, const CodesWriterOptions& options) {
  check_dimension(dimension);
  if (options.rows_per_block < 0 || options.rows_per_block % 16 != 0 || options.rows_per_block > 65536) {
    throw Error(ErrorCode::kBadArgument,
                "rows per block " + std::to_string(options.rows_per_block) + " is not a multiple of 16 up to 65536");
  }
  if (options.mean_f32.empty()) return;
  if (static_cast<int64_t>(options.mean_f32.size()) != dimension) {
    throw Error(ErrorCode::kBadArgument,
                "the mean has " + std::to_string(options.mean_f32.size()) + " values, but the dimension is " + std::to_string(dimension));
  }
  const int64_t column = first_not_finite(options.mean_f32.data(), dimension);
  if (column >= 0) {
    throw Error(ErrorCode::kNotFinite, "the mean is not finite at column " + std::to_string(column), -1, column);
  }
}

}  // namespace

CodesWriter::CodesWriter(const std::string& path, Metric metric, int64_t dimension, const CodesWriterOptions& options) {
  check_options(dimension, options);
  state_ = std::make_unique<State>(path, metric, dimension,
                                   options.rows_per_block > 0 ? options.rows_per_block : default_rows_per_block(dimension));
  state_->mean_f32 = options.mean_f32;
}

CodesWriter::~CodesWriter() = default;

void CodesWriter::append(const float* rows, int64_t count, ThreadPool& pool) {
  const FloatEnvironment environment;
  State& state = *state_;
  if (state.finished) throw Error(ErrorCode::kBadArgument, state.file.path() + ": append() was called after finish()");
  if (count <= 0) return;
  const int64_t first = this->rows();
  std::mutex mutex;
  int64_t bad_row = -1, bad_column = -1;
  pool.run((count + 255) / 256, [&](int64_t item) {
    for (int64_t i = item * 256; i < std::min(count, item * 256 + 256); ++i) {
      const int64_t column = first_not_finite(rows + i * state.dimension, state.dimension);
      if (column < 0) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (bad_row < 0 || i < bad_row) bad_row = i, bad_column = column;
      return;
    }
  });
  if (bad_row >= 0) {
    throw Error(ErrorCode::kNotFinite,
                "row " + std::to_string(first + bad_row) + " is NaN or infinite at column " + std::to_string(bad_column) +
                    "; its scores would be undefined. Remove the row or encode it again",
                first + bad_row, bad_column);
  }
  while (count > 0) {
    const int64_t take = std::min(count, state.rows_per_block - state.pending);
    std::memcpy(state.pending_f32.data() + state.pending * state.dimension, rows, take * state.dimension * 4);
    state.pending += take;
    state.rows += take;
    rows += take * state.dimension;
    count -= take;
    if (state.pending == state.rows_per_block) state.write_block(pool);
  }
}

int64_t CodesWriter::dimension() const { return state_->dimension; }

int64_t CodesWriter::rows() const { return state_->rows; }

void CodesWriter::finish(ThreadPool& pool) {
  const FloatEnvironment environment;
  State& state = *state_;
  if (state.finished) return;
  const int64_t total = rows();
  if (state.pending > 0) {
    state.write_block(pool);
  } else if (state.blocks == 0) {
    state.write_header();
  }
  const CodesFooter footer = make_codes_footer(total, state.blocks, state.identity.finish(total), state.rows_checksum.value());
  state.file.write_at(state.file_end(), &footer, sizeof footer);
  state.file.finish();
  state.finished = true;
}

}  // namespace trawl
