#include "dense/prefilter/prefilter_format.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

PrefilterBlockLayout::PrefilterBlockLayout(int64_t rows, int64_t components) {
  int64_t at = rows * components;
  const auto place = [&] {
    const int64_t here = at;
    at = round_up(at + rows * 4, 64);
    return here;
  };
  scale = place();
  residual = place();
  size = place();
  code_sum = place();
  bias = place();
  tail = at;
  bytes = at + static_cast<int64_t>(sizeof(CodesBlockTail));
}

std::string check_prefilter_shape(int64_t dimension, int64_t components) {
  if (dimension < 1 || dimension > kMaxPrefilterDimension) {
    return "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxPrefilterDimension) + "]";
  }
  if (components < 64 || components % 64 != 0 || components > kMaxPrefilterComponents || components > dimension) {
    return std::to_string(components) + " components are not a multiple of 64 up to " + std::to_string(kMaxPrefilterComponents) +
           " and to the dimension, " + std::to_string(dimension);
  }
  return "";
}

uint64_t prefilter_header_bytes(int64_t dimension, int64_t components) {
  return round_up(static_cast<int64_t>(sizeof(PrefilterHeader)) + 4 * dimension * components, 4096);
}

uint64_t prefilter_header_checksum(PrefilterHeader header, const std::vector<float>& basis) {
  header.checksum = 0;
  return checksum64(basis.data(), basis.size() * 4, checksum64(&header, sizeof header));
}

PrefilterHeader make_prefilter_header(const CodesFile& codes, int64_t components, double orthogonality_error,
                                      const std::vector<float>& basis) {
  PrefilterHeader header = {};
  std::memcpy(header.magic, kPrefilterMagic, sizeof header.magic);
  header.version = kPrefilterVersion;
  header.metric = static_cast<uint32_t>(codes.metric());
  header.dimension = static_cast<uint32_t>(codes.dimension());
  header.components = static_cast<uint32_t>(components);
  header.rows_per_block = static_cast<uint32_t>(codes.rows_per_block());
  header.rotation = kRotationHadamardSigns;
  header.sign_seed = kSignSeed;
  header.header_bytes = prefilter_header_bytes(codes.dimension(), components);
  header.block_bytes = PrefilterBlockLayout(codes.rows_per_block(), components).bytes;
  header.orthogonality_error = orthogonality_error;
  header.codes_identity = codes.identity();
  header.checksum = prefilter_header_checksum(header, basis);
  return header;
}

uint64_t prefilter_block_checksum(const uint8_t* block, const PrefilterBlockLayout& layout, uint64_t rows) {
  return checksum64(block, layout.tail, rows);
}

void check_prefilter_header(const std::string& path, const PrefilterHeader& header, int64_t file_bytes) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  if (std::memcmp(header.magic, kPrefilterMagic, sizeof header.magic) != 0) {
    refuse("the file is not a prefilter file (wrong magic)");
  }
  if (header.version != kPrefilterVersion) {
    refuse("the prefilter file has version " + std::to_string(header.version) + ", but this program reads version " +
           std::to_string(kPrefilterVersion) + "; build the prefilter again");
  }
  if (header.metric > static_cast<uint32_t>(Metric::kCosine)) refuse("unknown metric " + std::to_string(header.metric));
  const std::string shape = check_prefilter_shape(header.dimension, header.components);
  if (!shape.empty()) refuse(shape);
  if (header.rows_per_block < 16 || header.rows_per_block % 16 != 0 || header.rows_per_block > 65536) {
    refuse("rows per block " + std::to_string(header.rows_per_block) + " is not a multiple of 16 in [16, 65536]");
  }
  if (header.rotation != kRotationHadamardSigns) refuse("unknown rotation " + std::to_string(header.rotation));
  // Searches rotate queries with kSignSeed.
  if (header.sign_seed != kSignSeed) refuse("unknown seed of the rotation's signs");
  if (!(header.orthogonality_error >= 0 && header.orthogonality_error <= kMaxOrthogonalityError)) {
    refuse("the orthogonality error of the components is not in [0, 2^-10]");
  }
  if (header.header_bytes != prefilter_header_bytes(header.dimension, header.components)) refuse("the header size is wrong");
  const PrefilterBlockLayout layout(header.rows_per_block, header.components);
  if (header.block_bytes != static_cast<uint64_t>(layout.bytes)) refuse("the block size is wrong");
  if (static_cast<int64_t>(header.header_bytes) > file_bytes) refuse("the file is truncated inside its header");
}

}  // namespace trawl
