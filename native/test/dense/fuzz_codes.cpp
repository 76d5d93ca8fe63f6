// Fuzz target for the readers of codes and prefilters, and for searches and verification of the files that they accept.
// The first bytes select the case; the others are the file.
#include <cstdint>
#include <cstring>

#include "dense/prefilter/prefilter_format.hpp"
#include "oracle.hpp"

namespace {

using namespace trawl;

ThreadPool& pool() {
  static ThreadPool shared(1);
  return shared;
}

void try_file(const std::string& path, const std::vector<float>& values, uint8_t choice) {
  try {
    const auto codes = CodesFile::open(path);
    if (codes->rows() * codes->dimension() > static_cast<int64_t>(values.size())) return;
    const auto rows = std::make_shared<Rows>(values.data(), RowType::kFloat32, codes->rows(), codes->dimension());
    (void)verify_codes(*codes, *rows, pool());
    Index index(codes->metric(), codes->dimension());
    index.add_shard(rows, codes);
    SearchOptions options;
    options.k = 1 + choice % 7;
    options.candidate_capacity = 1 + choice;
    (void)search(index, values.data(), 1 + choice % 40, options, pool());
  } catch (const Error&) {
  }
}

// Overwrites some bytes of a valid prefilter. In some cases it recomputes the checksum of the header, to reach the code behind
// that check.
void try_prefilter(const std::string& codes_path, const std::string& path, const std::vector<float>& values, const uint8_t* data,
                   size_t size) {
  const int64_t n = data[2] % 40, d = 64 + data[3] % 40;
  const auto metric = static_cast<Metric>(data[1] % 3);
  CodesWriterOptions options;
  options.rows_per_block = 16;
  {
    CodesWriter writer(codes_path, metric, d, options);
    writer.append(values.data(), n, pool());
    writer.finish(pool());
  }
  const auto codes = CodesFile::open(codes_path);
  const auto rows = std::make_shared<Rows>(values.data(), RowType::kFloat32, n, d);
  PrefilterOptions prefilter_options;
  prefilter_options.components = 64;
  make_prefilter(path, *codes, *rows, prefilter_options, pool());
  auto bytes = oracle::read_file(path);
  for (size_t i = 4; i + 4 <= size; i += 4) {
    size_t at = data[i] | data[i + 1] << 8 | (data[i + 2] & 3) << 16;
    if (data[i + 2] & 4) at = bytes.size() - 1 - at % bytes.size();
    if (at < bytes.size()) bytes[at] = data[i + 3];
  }
  PrefilterHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t basis = size_t{header.dimension} * header.components;
  if ((data[0] & 8) != 0 && basis <= (bytes.size() - sizeof header) / 4) {
    std::vector<float> components(basis);
    std::memcpy(components.data(), bytes.data() + sizeof header, 4 * basis);
    header.checksum = prefilter_header_checksum(header, components);
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  if ((data[0] & 16) != 0) bytes.resize(bytes.size() * data[1] / 255);
  oracle::write_file(path, bytes.data(), bytes.size());
  try {
    const auto prefilter = PrefilterFile::open(path);
    (void)verify_prefilter(*prefilter, *codes, *rows, pool());
    Index index(metric, d);
    index.add_shard(rows, codes, prefilter);
    SearchOptions search_options;
    search_options.k = 1 + data[1] % 7;
    search_options.prefilter.sample_rows = 1;
    search_options.prefilter.trial_share = search_options.prefilter.refined_share = 1;
    (void)search(index, values.data(), 1 + data[1] % 40, search_options, pool());
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static oracle::TempDir directory;
  static const std::string path = directory.file();
  static const std::vector<float> values = oracle::gaussian(1, 131072, 1).values;
  if (size < 4) return 0;
  const uint8_t choice = data[1];
  if (data[0] % 4 == 1) {
    static const std::string codes_path = directory.file();
    try_prefilter(codes_path, path, values, data, size);
    return 0;
  }
  if (data[0] % 3 == 0) {  // the bytes as they are
    oracle::write_file(path, data + 4, size - 4);
  } else {  // a valid file with some bytes overwritten, which passes the first checks
    const int64_t n = data[2] % 40, d = 1 + data[3] % 70;
    CodesWriterOptions options;
    options.rows_per_block = 16;
    {
      CodesWriter writer(path, static_cast<Metric>(choice % 3), d, options);
      writer.append(values.data(), n, pool());
      writer.finish(pool());
    }
    auto bytes = oracle::read_file(path);
    for (size_t i = 4; i + 4 <= size; i += 4) {  // 3 bytes of position, 1 of value; positions past the header are in blocks
      size_t at = data[i] | data[i + 1] << 8 | (data[i + 2] & 3) << 16;
      if (data[i + 2] & 4) at = bytes.size() - 1 - at % bytes.size();
      if (at < bytes.size()) bytes[at] = data[i + 3];
    }
    if (data[0] % 3 == 2) bytes.resize(bytes.size() * choice / 255);
    oracle::write_file(path, bytes.data(), bytes.size());
  }
  try_file(path, values, choice);
  return 0;
}
