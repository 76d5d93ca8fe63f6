#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.hpp"
#include "base/cancel.hpp"
#include "base/float_environment.hpp"
#include "base/output_file.hpp"
#include "dense/codes/codes_format.hpp"
#include "dense/prefilter/prefilter_choice.hpp"
#include "dense/prefilter/prefilter_codes.hpp"
#include "dense/prefilter/prefilter_format.hpp"
#include "trawl/error.hpp"
#include "trawl/isa.hpp"

namespace trawl {

namespace {

constexpr int64_t kBasisRows = 6144;  // number of rows from which the principal components are computed

// Distributes the components, in order of falling variance, over the blocks of the rotation, so that all blocks have about the
// same variance and one scale fits all.
std::vector<float> dealt_over_blocks(const std::vector<float>& basis, int64_t components, int64_t dimension) {
  const int64_t blocks = components % 256 == 0 ? components / 256 : components / 64, in_block = components / blocks;
  std::vector<float> dealt(components * dimension);
  for (int64_t i = 0; i < components; ++i) {
    const int64_t at = i % blocks * in_block + i / blocks;
    std::copy(basis.data() + i * dimension, basis.data() + (i + 1) * dimension, dealt.data() + at * dimension);
  }
  return dealt;
}

// Encodes rows [first, first + count) into `block`, which must be zero, and writes its tail.
void encode_block(const PrefilterCoder& coder, const Rows& rows, int64_t first, int64_t count, const PrefilterBlockLayout& layout,
                  uint8_t* block) {
  const int64_t d = rows.dimension(), h = coder.components();
  PrefilterCoder::Scratch scratch(coder);
  std::vector<float> values(kProjectRows * d);
  for (int64_t i = 0; i < count; i += kProjectRows) {
    const int here = static_cast<int>(std::min<int64_t>(kProjectRows, count - i));
    const float* pointers[kProjectRows] = {};
    for (int r = 0; r < here; ++r) {
      const int64_t row = first + i + r;
      rows.copy_row(row, values.data() + r * d);
      pointers[r] = values.data() + r * d;
      const int64_t column = first_not_finite(pointers[r], d);
      if (column < 0) continue;
      throw Error(ErrorCode::kNotFinite, "row " + std::to_string(row) + " is NaN or infinite at column " + std::to_string(column), row,
                  column);
    }
    PrefilterStats stats[kProjectRows];
    coder.encode(pointers, here, reinterpret_cast<int8_t*>(block + i * h), stats, scratch);
    for (int r = 0; r < here; ++r) {
      const int64_t at = 4 * (i + r);
      std::memcpy(block + layout.scale + at, &stats[r].scale_f32, 4);
      std::memcpy(block + layout.residual + at, &stats[r].residual_f32, 4);
      std::memcpy(block + layout.size + at, &stats[r].size_f32, 4);
      std::memcpy(block + layout.code_sum + at, &stats[r].code_sum_i32, 4);
      std::memcpy(block + layout.bias + at, &stats[r].bias_f32, 4);
    }
  }
  CodesBlockTail tail = {};
  tail.rows = count;
  tail.checksum = prefilter_block_checksum(block, layout, tail.rows);
  std::memcpy(block + layout.tail, &tail, sizeof tail);
}

void write_file(const std::string& path, const PrefilterHeader& header, const std::vector<float>& basis, const CodesFile& codes,
                const Rows& rows, const Kernels& kernels, ThreadPool& pool, const std::atomic<bool>* cancel) {
  OutputFile file(path, OutputFile::Unfinished::kRemove);
  std::vector<uint8_t> head(header.header_bytes, 0);
  std::memcpy(head.data(), &header, sizeof header);
  std::memcpy(head.data() + sizeof header, basis.data(), basis.size() * 4);
  file.write_at(0, head.data(), static_cast<int64_t>(head.size()));

  const PrefilterCoder coder(codes, basis.data(), header.components, header.orthogonality_error, kernels);
  const int64_t n = codes.rows(), per_block = codes.rows_per_block();
  const PrefilterBlockLayout layout(per_block, header.components);
  const SequentialReading reading(rows);
  pool.run(codes.blocks(), [&](int64_t index) {
    check_cancelled(cancel);
    AlignedBuffer<uint8_t> block(layout.bytes);
    const int64_t first = index * per_block, count = std::min(per_block, n - first);
    encode_block(coder, rows, first, count, layout, block.data());
    file.write_at(static_cast<int64_t>(header.header_bytes) + index * layout.bytes, block.data(), layout.bytes);
    rows.release(first, count);
  });
  codes.require_unchanged();
  rows.require_unchanged();
  const CodesFooter footer = make_codes_footer(n, codes.blocks());
  file.write_at(static_cast<int64_t>(header.header_bytes) + codes.blocks() * layout.bytes, &footer, sizeof footer);
  file.finish();
}

}  // namespace

PrefilterResult make_prefilter(const std::string& path, const CodesFile& codes, const Rows& rows, const PrefilterOptions& options,
                               ThreadPool& pool, const std::atomic<bool>* cancel) {
  const FloatEnvironment environment;
  const int64_t d = codes.dimension(), n = codes.rows();
  if (n != rows.rows() || d != rows.dimension()) {
    throw Error(ErrorCode::kBadFile, "codes are " + std::to_string(n) + " x " + std::to_string(d) + ", but rows are " +
                                         std::to_string(rows.rows()) + " x " + std::to_string(rows.dimension()));
  }
  PrefilterChoice choice = {options.components, "set by the caller"};
  const bool choosing = options.components == 0;
  if (choosing) {
    choice = limit_prefilter(n, d);
    if (choice.components == 0) return {0, choice.reason};
  } else {
    const std::string problem = check_prefilter_shape(d, options.components);
    if (!problem.empty()) throw Error(ErrorCode::kBadArgument, problem);
  }

  const Kernels& kernels = select_kernels();
  const RowCoder coder(codes.metric(), codes.mean(), codes.sign_seed());
  const std::vector<float> sample = sample_rows(coder, rows, std::min(n, kBasisRows), 0, pool);
  check_cancelled(cancel);
  std::vector<float> basis;
  if (n > 0) basis = principal_components(sample.data(), std::min(n, kBasisRows), d, choice.components, kernels, pool);
  check_cancelled(cancel);
  if (basis.empty()) {
    if (choosing) return {0, "the rows do not vary"};
    basis.assign(choice.components * d, 0.0f);
    for (int64_t i = 0; i < choice.components; ++i) basis[i * d + i] = 1;
  }
  if (choosing) {
    choice = choose_prefilter(codes, rows, coder, basis, choice.components, kernels, pool);
    if (choice.components == 0) return {0, choice.reason};
  }
  basis = dealt_over_blocks(basis, choice.components, d);
  const double orthogonality_error = orthogonality_error_of(basis.data(), choice.components, d, kernels, pool);
  if (!(orthogonality_error <= kMaxOrthogonalityError)) return {0, "no orthonormal components were found"};

  const PrefilterHeader header = make_prefilter_header(codes, choice.components, orthogonality_error, basis);
  write_file(path, header, basis, codes, rows, kernels, pool, cancel);
  return {choice.components, choice.reason};
}

}  // namespace trawl
