#include "encoder/byte_choice.hpp"

#include <algorithm>
#include <chrono>

#include "base/aligned_buffer.hpp"

namespace trawl::encoder {

namespace {

constexpr int kPasses = 5;

template <typename T>
AlignedBuffer<T> filled(int64_t count, T value) {
  AlignedBuffer<T> buffer(static_cast<size_t>(count));
  std::fill(buffer.data(), buffer.data() + count, value);
  return buffer;
}

}  // namespace

double product_seconds(const ByteProducts& products, int64_t rows) {
  // The time does not depend on the values.
  const auto codes = filled<uint8_t>(rows * kTimedColumns, kCodeOffset + 1);
  const auto packed = filled<int8_t>(kTimedColumns * kTimedColumns, 1);
  const auto offset_corrections = filled<int32_t>(kTimedColumns, -kCodeOffset * static_cast<int32_t>(kTimedColumns));
  const auto ones = filled<float>(std::max(rows, kTimedColumns), 1), zeros = filled<float>(kTimedColumns, 0);
  AlignedBuffer<uint16_t> values(static_cast<size_t>(rows * kTimedColumns));
  const ByteTask task{codes.data(),  ones.data(),   packed.data(), offset_corrections.data(), ones.data(), zeros.data(),
                      kTimedColumns, kTimedColumns, rows};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    products.to_bf16(task, 0, kTimedColumns / kPanel, values.data());
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = pass == 0 ? taken : std::min(best, taken);
  }
  return best;
}

ByteChoice time_products(const ByteProducts& small_batch, const ByteProducts& large_batch) {
  const auto seconds_of = [&](bool is_large, int64_t rows) { return product_seconds(is_large ? large_batch : small_batch, rows); };
  return {&small_batch, &large_batch, byte_rows_from(seconds_of)};
}

}  // namespace trawl::encoder
