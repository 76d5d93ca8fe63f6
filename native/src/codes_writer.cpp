#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "aligned_buffer.hpp"
#include "codes_format.hpp"
#include "float_environment.hpp"
#include "row_codes.hpp"
#include "score.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

constexpr int64_t kRowsPerItem = 32;  // encoding work handed out at a time

// Mean of the first block, in row order, so the bits depend on the rows alone.
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
  std::string path;
  Metric metric;
  int64_t dimension;
  int64_t rows_per_block;
  std::vector<float> mean_f32;  // empty until the first block is complete
  std::unique_ptr<RowCoder> coder;
  int fd = -1;
  int64_t blocks = 0;           // written
  int64_t pending = 0;          // rows in pending_f32
  std::vector<float> pending_f32;
  bool finished = false;

  ~State() {
    if (fd >= 0) ::close(fd);
  }

  [[noreturn]] void throw_io(const char* what) const {
    throw Error(ErrorCode::kIo, path + ": " + what + ": " + std::strerror(errno));
  }

  int64_t file_end() const {
    return static_cast<int64_t>(codes_header_bytes(dimension)) +
           blocks * CodesBlockLayout(rows_per_block, padded_dimension(dimension)).bytes;
  }

  void write_at(int64_t position, const void* data, int64_t bytes) const {
    const auto* p = static_cast<const uint8_t*>(data);
    while (bytes > 0) {
      const ssize_t wrote = ::pwrite(fd, p, bytes, position);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) throw_io("cannot write");
      p += wrote;
      position += wrote;
      bytes -= wrote;
    }
  }

  void set_mean(std::vector<float> mean) {
    mean_f32 = std::move(mean);
    coder = std::make_unique<RowCoder>(metric, mean_f32, kSignSeed);
  }

  void write_header() {
    if (mean_f32.empty()) set_mean(mean_of(metric, pending_f32.data(), pending, dimension));
    if (!coder) set_mean(mean_f32);
    const CodesHeader header = make_codes_header(metric, rows_per_block, mean_f32);
    std::vector<uint8_t> bytes(header.header_bytes, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, mean_f32.data(), mean_f32.size() * 4);
    write_at(0, bytes.data(), bytes.size());
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
        const RowStats stats = coder->encode(pending_f32.data() + i * dimension,
                                             reinterpret_cast<int8_t*>(block.data() + i * padded), scratch);
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
    write_at(file_end(), block.data(), layout.bytes);
    ++blocks;
    pending = 0;
  }
};

CodesWriter::CodesWriter() : state_(std::make_unique<State>()) {}
CodesWriter::~CodesWriter() = default;

namespace {

void check_options(int64_t dimension, const CodesWriterOptions& options) {
  if (dimension < 1 || dimension > kMaxDimension) {
    throw Error(ErrorCode::kBadArgument,
                "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxDimension) + "]");
  }
  if (options.rows_per_block < 0 || options.rows_per_block % 16 != 0 || options.rows_per_block > 65536) {
    throw Error(ErrorCode::kBadArgument, "rows per block " + std::to_string(options.rows_per_block) +
                                             " is not a multiple of 16 up to 65536");
  }
  if (options.mean_f32.empty()) return;
  if (static_cast<int64_t>(options.mean_f32.size()) != dimension) {
    throw Error(ErrorCode::kBadArgument, "the mean has " + std::to_string(options.mean_f32.size()) +
                                             " values, the dimension is " + std::to_string(dimension));
  }
  const int64_t column = first_not_finite(options.mean_f32.data(), dimension);
  if (column >= 0) {
    throw Error(ErrorCode::kNotFinite, "the mean is not finite at column " + std::to_string(column), -1, column);
  }
}

}  // namespace

CodesWriter::CodesWriter(const std::string& path, Metric metric, int64_t dimension, const CodesWriterOptions& options)
    : CodesWriter() {
  check_options(dimension, options);
  state_->path = path;
  state_->metric = metric;
  state_->dimension = dimension;
  state_->rows_per_block = options.rows_per_block > 0 ? options.rows_per_block : default_rows_per_block(dimension);
  state_->mean_f32 = options.mean_f32;
  state_->fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (state_->fd < 0) state_->throw_io("cannot create");
  state_->pending_f32.resize(state_->rows_per_block * dimension);
}

std::unique_ptr<CodesWriter> CodesWriter::resume(const std::string& path, Metric metric, int64_t dimension,
                                                 int64_t rows_known_good, const CodesWriterOptions& options) {
  check_options(dimension, options);
  std::unique_ptr<CodesWriter> writer(new CodesWriter);
  State& state = *writer->state_;
  state.path = path;
  state.metric = metric;
  state.dimension = dimension;
  state.fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info = {};
  if (state.fd < 0 && errno != ENOENT) state.throw_io("cannot open");
  if (state.fd >= 0 && ::fstat(state.fd, &info) != 0) state.throw_io("cannot stat");
  const auto read_at = [&](int64_t position, void* into, int64_t bytes) {
    return ::pread(state.fd, into, bytes, position) == bytes;
  };

  CodesHeader header;
  const int64_t header_bytes = codes_header_bytes(dimension);
  if (state.fd < 0 || info.st_size < header_bytes || !read_at(0, &header, sizeof header) || header.magic[0] == 0) {
    return std::make_unique<CodesWriter>(path, metric, dimension, options);
  }
  check_codes_header(path, header, info.st_size);
  if (header.metric != static_cast<uint32_t>(metric) || header.dimension != dimension) {
    throw Error(ErrorCode::kBadFile, path + ": was begun for dimension " + std::to_string(header.dimension) + " and " +
                                         metric_name(static_cast<Metric>(header.metric)) + ", not for dimension " +
                                         std::to_string(dimension) + " and " + metric_name(metric));
  }
  std::vector<float> mean(dimension);
  if (!read_at(sizeof header, mean.data(), 4 * dimension)) state.throw_io("cannot read");
  if (codes_header_checksum(header, mean) != header.checksum) {
    throw Error(ErrorCode::kBadFile, path + ": header checksum does not hold; delete the file and start again");
  }
  if ((options.rows_per_block > 0 && options.rows_per_block != header.rows_per_block) ||
      (!options.mean_f32.empty() && std::memcmp(options.mean_f32.data(), mean.data(), 4 * dimension) != 0)) {
    throw Error(ErrorCode::kBadArgument, path + ": was begun with another mean or block size");
  }
  state.rows_per_block = header.rows_per_block;
  const int64_t block_bytes = header.block_bytes;
  const CodesBlockLayout layout(state.rows_per_block, header.padded_dimension);
  int64_t keep = std::min((info.st_size - header_bytes) / block_bytes,
                          std::max<int64_t>(rows_known_good, 0) / state.rows_per_block);
  AlignedBuffer<uint8_t> block(block_bytes);
  for (; keep > 0; --keep) {
    CodesBlockTail tail;
    if (!read_at(header_bytes + (keep - 1) * block_bytes, block.data(), block_bytes)) continue;
    std::memcpy(&tail, block.data() + layout.tail, sizeof tail);
    if (tail.rows == static_cast<uint64_t>(state.rows_per_block) &&
        tail.checksum == codes_block_checksum(block.data(), layout, tail.rows)) {
      break;
    }
  }
  if (keep == 0) {
    CodesWriterOptions anew = options;
    anew.rows_per_block = state.rows_per_block;
    return std::make_unique<CodesWriter>(path, metric, dimension, anew);
  }
  state.blocks = keep;
  state.set_mean(std::move(mean));
  state.pending_f32.resize(state.rows_per_block * dimension);
  if (::ftruncate(state.fd, state.file_end()) != 0) state.throw_io("cannot truncate");
  return writer;
}

void CodesWriter::append(const float* rows, int64_t count, ThreadPool& pool) {
  const FloatEnvironment environment;
  State& state = *state_;
  if (state.finished) throw Error(ErrorCode::kBadArgument, state.path + ": append after finish");
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
                "row " + std::to_string(first + bad_row) + " is NaN or infinite at column " +
                    std::to_string(bad_column) + "; such a vector has no exact rank, drop the row or encode it again",
                first + bad_row, bad_column);
  }
  while (count > 0) {
    const int64_t take = std::min(count, state.rows_per_block - state.pending);
    std::memcpy(state.pending_f32.data() + state.pending * state.dimension, rows, take * state.dimension * 4);
    state.pending += take;
    rows += take * state.dimension;
    count -= take;
    if (state.pending == state.rows_per_block) state.write_block(pool);
  }
}

int64_t CodesWriter::rows() const { return state_->blocks * state_->rows_per_block + state_->pending; }
int64_t CodesWriter::rows_on_disk() const { return state_->blocks * state_->rows_per_block; }

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
  const CodesFooter footer = make_codes_footer(total, state.blocks);
  state.write_at(state.file_end(), &footer, sizeof footer);
  if (::fsync(state.fd) != 0) state.throw_io("cannot sync");
  state.finished = true;
}

}  // namespace trawl
