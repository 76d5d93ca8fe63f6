// The codes file: its bytes depend only on the rows, and a damaged file is refused with a reason.
#include <unistd.h>

#include <cstddef>

#include "dense/codes/codes_format.hpp"
#include "oracle.hpp"

using namespace oracle;
using trawl::CodesFile;
using trawl::CodesWriter;
using trawl::CodesWriterOptions;
using trawl::ErrorCode;

namespace {

void write_codes(const std::string& path, const Data& data, Metric metric, trawl::ThreadPool& pool, int64_t rows_per_block = 16) {
  CodesWriterOptions options;
  options.rows_per_block = rows_per_block;
  CodesWriter writer(path, metric, data.d, options);
  writer.append(data.values.data(), data.n, pool);
  writer.finish(pool);
}

}  // namespace

TEST("codes file: the bytes do not depend on threads or on the division of rows into calls") {
  TempDir directory;
  const Data data = encoder_like(150, 100, 1);
  trawl::ThreadPool one(1), four(4);
  for (const Metric metric : kMetrics) {
    const std::string whole = directory.file(), pieces = directory.file();
    write_codes(whole, data, metric, one, 32);
    CodesWriterOptions options;
    options.rows_per_block = 32;
    CodesWriter writer(pieces, metric, data.d, options);
    for (int64_t i = 0, step = 1; i < data.n; i += step, step = step * 2 % 61) {
      writer.append(data.row(i), std::min(step, data.n - i), four);
    }
    CHECK_EQUAL(writer.rows(), data.n);
    writer.finish(four);
    CHECK_EQUAL(writer.rows(), data.n);
    CHECK(read_file(whole) == read_file(pieces));
    const auto codes = CodesFile::open(whole);
    CHECK_EQUAL(codes->rows(), 150);
    CHECK_EQUAL(codes->blocks(), 5);
    CHECK_EQUAL(codes->padded(), 128);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(codes->block(3).codes_i8) % 64, size_t{0});
    for (int64_t b = 0; b < 5; ++b) CHECK(codes->block_checksum_holds(b));
  }
}

TEST("codes file: a file that was closed without finish() is refused, and a new writer replaces it") {
  TempDir directory;
  const Data data = encoder_like(150, 70, 2);
  trawl::ThreadPool pool(2);
  const std::string whole = directory.file(), path = directory.file();
  write_codes(whole, data, Metric::kInnerProduct, pool);
  for (const int64_t appended : {0, 10, 16, 90, 150}) {
    {
      CodesWriterOptions options;
      options.rows_per_block = 16;
      CodesWriter writer(path, Metric::kInnerProduct, data.d, options);
      writer.append(data.row(0), appended, pool);
    }
    CHECK_REFUSED(CodesFile::open(path), ErrorCode::kBadFile, appended < 16 ? "too short" : "has no footer");
    write_codes(path, data, Metric::kInnerProduct, pool);
    CHECK(read_file(path) == read_file(whole));
  }
}

TEST("codes file: a file truncated to any length is refused with a reason") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const std::string path = directory.file(), cut = directory.file();
  write_codes(path, gaussian(40, 8, 3), Metric::kSquaredL2, pool);
  const auto bytes = read_file(path);
  for (size_t length = 0; length < bytes.size(); length += length < 200 ? 7 : 331) {
    write_file(cut, bytes.data(), length);
    CHECK_REFUSED(CodesFile::open(cut), ErrorCode::kBadFile, cut);
  }
  auto longer = bytes;
  longer.push_back(0);
  write_file(cut, longer.data(), longer.size());
  CHECK_REFUSED(CodesFile::open(cut), ErrorCode::kBadFile, "no footer");
  CHECK_REFUSED(CodesFile::open("/nonexistent/codes.i8"), ErrorCode::kReadFailed, "/nonexistent/codes.i8");
  CHECK_REFUSED(CodesFile::open("/tmp"), ErrorCode::kBadFile, "not a regular file");
}

TEST("codes file: damage in any field of header, mean or footer is refused") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const std::string path = directory.file(), damaged = directory.file();
  write_codes(path, gaussian(40, 8, 4), Metric::kInnerProduct, pool);
  const auto bytes = read_file(path);
  const auto refuse = [&](size_t at, uint8_t flip) {
    auto copy = bytes;
    copy[at] ^= flip;
    write_file(damaged, copy.data(), copy.size());
    CHECK_REFUSED(CodesFile::open(damaged), ErrorCode::kBadFile, damaged);
  };
  for (size_t at = 0; at < sizeof(trawl::CodesHeader) + 32; ++at) refuse(at, 0x41);
  const size_t footer = bytes.size() - sizeof(trawl::CodesFooter);
  for (size_t at = 0; at < sizeof(trawl::CodesFooter); ++at) refuse(footer + at, 0x41);
  auto newer = bytes;
  newer[offsetof(trawl::CodesHeader, version)] = 9;
  write_file(damaged, newer.data(), newer.size());
  CHECK_REFUSED(CodesFile::open(damaged), ErrorCode::kBadFile, "version 9, but this program reads versions 1 to 2");
}

TEST("codes file: bad arguments and calls after finish() are refused") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const std::string path = directory.file();
  CHECK_REFUSED(CodesWriter(path, Metric::kInnerProduct, 0), ErrorCode::kBadArgument, "dimension 0");
  CHECK_REFUSED(CodesWriter(path, Metric::kInnerProduct, 131073), ErrorCode::kBadArgument, "dimension 131073");
  CodesWriterOptions options;
  options.rows_per_block = 24;
  CHECK_REFUSED(CodesWriter(path, Metric::kInnerProduct, 4, options), ErrorCode::kBadArgument, "multiple of 16");
  options.rows_per_block = 16;
  options.mean_f32 = {1, 2};
  CHECK_REFUSED(CodesWriter(path, Metric::kInnerProduct, 4, options), ErrorCode::kBadArgument, "mean has 2");
  options.mean_f32.clear();
  CodesWriter writer(path, Metric::kInnerProduct, 4, options);
  float rows[8] = {1, 2, 3, 4, 5, std::numeric_limits<float>::infinity(), 7, 8};
  writer.append(rows, 1, pool);
  CHECK_REFUSED(writer.append(rows, 2, pool), ErrorCode::kNotFinite, "row 2 is NaN or infinite at column 1");
  CHECK_EQUAL(writer.rows(), 1);
  writer.finish(pool);
  writer.finish(pool);
  CHECK_REFUSED(writer.append(rows, 1, pool), ErrorCode::kBadArgument, "after finish()");
  CHECK_REFUSED(CodesWriter("/nonexistent/x", Metric::kInnerProduct, 4), ErrorCode::kWriteFailed, "cannot create");
}

TEST("verify: a valid file passes, and verification names the row and the reason for each number that is too small") {
  TempDir directory;
  trawl::ThreadPool pool(2);
  for (const Metric metric : kMetrics) {
    Data data = encoder_like(50, 70, 5);
    if (metric == Metric::kCosine) {
      for (int64_t j = 0; j < 70; ++j) data.row(20)[j] = std::numeric_limits<float>::max();
    }
    const std::string path = directory.file(), damaged = directory.file();
    write_codes(path, data, metric, pool);
    const trawl::Rows rows(data.values.data(), trawl::RowType::kFloat32, 50, 70);
    const auto good = trawl::verify_codes(*CodesFile::open(path), rows, pool);
    CHECK_EQUAL(good.bad_row, -1);
    CHECK_EQUAL(good.rows_checked, 50);

    const auto bytes = read_file(path);
    const trawl::CodesBlockLayout layout(16, 128);
    const auto block = [&](int64_t index) { return 4096 + index * layout.bytes; };
    const auto expect = [&](int64_t at, size_t size, const void* value, int64_t row, const char* reason) {
      auto copy = bytes;
      std::memcpy(copy.data() + at, value, size);
      write_file(damaged, copy.data(), copy.size());
      const auto result = trawl::verify_codes(*CodesFile::open(damaged), rows, pool);
      CHECK_EQUAL(result.bad_row, row);
      if (result.reason.find(reason) == std::string::npos) check::fail(__FILE__, __LINE__, result.reason);
    };
    const auto lowered = [&](int64_t at) {
      float value;
      std::memcpy(&value, bytes.data() + at, 4);
      return std::nextafter(value, 0.0f);
    };
    const int64_t row17 = block(1);
    const float residual = lowered(row17 + layout.residual + 4), norm = lowered(row17 + layout.norm + 4), negative = -1;
    const float no_number = std::numeric_limits<float>::quiet_NaN();
    expect(row17 + layout.residual + 4, 4, &residual, 17, "residual bound");
    expect(row17 + layout.norm + 4, 4, &norm, 17, "norm bound");
    expect(row17 + layout.norm + 4, 4, &no_number, 17, "norm bound");
    expect(row17 + layout.scale + 4, 4, &negative, 17, "scale");
    const double bias = 1e-9;
    expect(row17 + layout.bias + 8, 8, &bias, 17, "bias");
    const int32_t sum = 123456;
    expect(row17 + layout.code_sum + 4, 4, &sum, 17, "code sum");
    const int8_t lowest = -128;
    expect(row17 + 128 + 3, 1, &lowest, 17, "code -128");
    const float padding = 1;
    expect(block(3) + layout.norm + 4 * 9, 4, &padding, 48, "checksum of block 3");
    // Verify against other rows.
    Data other = data;
    other.row(31)[5] += 0.25f;
    const trawl::Rows changed(other.values.data(), trawl::RowType::kFloat32, 50, 70);
    CHECK_EQUAL(trawl::verify_codes(*CodesFile::open(path), changed, pool).bad_row, 31);
    const trawl::Rows fewer(data.values.data(), trawl::RowType::kFloat32, 49, 70);
    CHECK_REFUSED(trawl::verify_codes(*CodesFile::open(path), fewer, pool), ErrorCode::kBadFile, "50 x 70");
  }
}

TEST("codes file: the identity differs whichever block has another row, and the checksum of the rows too") {
  TempDir directory;
  trawl::ThreadPool pool(2);
  const int64_t blocks = 200;
  Data data = gaussian(16 * blocks, 8, 11);
  const std::string path = directory.file();
  write_codes(path, data, Metric::kInnerProduct, pool);
  const auto original = CodesFile::open(path);
  CHECK_EQUAL(original->identity(), original->identity_of_blocks());
  for (int64_t block = 1; block < blocks; block += 3) {
    float& value = data.row(16 * block + 5)[3];
    const float before = std::exchange(value, value + 1);
    const std::string changed_path = directory.file();
    write_codes(changed_path, data, Metric::kInnerProduct, pool);
    const auto changed = CodesFile::open(changed_path);
    CHECK(changed->mean() == original->mean());
    CHECK(changed->identity() != original->identity() && changed->rows_checksum() != original->rows_checksum());
    value = before;
  }
}

TEST("verify: codes of other vectors are found even if all their bounds hold") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  Data data = gaussian(40, 8, 12);
  const std::string path = directory.file();
  CodesWriterOptions options;
  options.rows_per_block = 16;
  options.mean_f32.assign(8, 0.0f);
  {
    CodesWriter writer(path, Metric::kInnerProduct, 8, options);
    writer.append(data.row(0), 40, pool);
    writer.finish(pool);
  }
  const auto codes = CodesFile::open(path);
  const trawl::Rows rows(data.values.data(), trawl::RowType::kFloat32, 40, 8);
  CHECK_EQUAL(trawl::verify_codes(*codes, rows, pool).reason, std::string());
  // One of these values becomes smaller without leaving the bounds of its row.
  int found = 0;
  for (float& value : data.values) {
    const float before = std::exchange(value, std::nextafter(value, 0.0f));
    const std::string reason = trawl::verify_codes(*codes, rows, pool).reason;
    CHECK(!reason.empty());
    found += reason.find("other vectors, although all bounds hold") != std::string::npos;
    value = before;
  }
  CHECK(found > 0);
}

TEST("index: codes of other vectors are refused, with the number of a row") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const std::string path = directory.file();
  for (const Metric metric : kMetrics) {
    const Data data = gaussian(300, 8, 13);
    write_codes(path, data, metric, pool);
    const auto codes = CodesFile::open(path);
    // The same vectors, each one place later.
    std::vector<float> moved(data.values.end() - 8, data.values.end());
    moved.insert(moved.end(), data.values.begin(), data.values.end() - 8);
    trawl::Index index(metric, 8);
    const auto rows = std::make_shared<trawl::Rows>(moved.data(), trawl::RowType::kFloat32, 300, 8);
    CHECK_REFUSED(index.add_shard(rows, codes), ErrorCode::kBadFile, "made for other vectors, or are damaged: row 0");
    CHECK_EQUAL(index.rows(), 0);
  }
}

TEST("verify: rows whose bounds are infinite are valid") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  Data data = gaussian(20, 400, 6);
  for (int64_t j = 0; j < 400; ++j) data.row(11)[j] = std::numeric_limits<float>::max();
  const std::string path = directory.file();
  write_codes(path, data, Metric::kInnerProduct, pool, 32);
  const auto codes = CodesFile::open(path);
  CHECK(std::isinf(codes->block(0).norm_f32[11]) && codes->block(0).scale_f32[11] == 0);
  const trawl::Rows rows(data.values.data(), trawl::RowType::kFloat32, 20, 400);
  CHECK_EQUAL(trawl::verify_codes(*codes, rows, pool).reason, std::string());
}

TEST("index: codes with another shape or metric are refused") {
  TempDir directory;
  trawl::ThreadPool pool(1);
  const Data data = gaussian(20, 8, 7);
  const std::string path = directory.file();
  write_codes(path, data, Metric::kInnerProduct, pool);
  const auto codes = CodesFile::open(path);
  const auto rows = std::make_shared<trawl::Rows>(data.values.data(), trawl::RowType::kFloat32, 20, 8);
  trawl::Index index(Metric::kInnerProduct, 8), cosine(Metric::kCosine, 8), wide(Metric::kInnerProduct, 9);
  index.add_shard(rows, codes);
  CHECK_EQUAL(index.rows(), 20);
  CHECK_EQUAL(index.resident_bytes(), codes->bytes());
  CHECK_EQUAL(index.mapped_bytes(), 20 * 8 * 4);
  CHECK_REFUSED(cosine.add_shard(rows, codes), ErrorCode::kBadFile, "ranks by cosine");
  CHECK_REFUSED(wide.add_shard(rows, codes), ErrorCode::kBadFile, "dimension 8");
  const auto fewer = std::make_shared<trawl::Rows>(data.values.data(), trawl::RowType::kFloat32, 19, 8);
  CHECK_REFUSED(index.add_shard(fewer, codes), ErrorCode::kBadFile, "20 x 8");
}
