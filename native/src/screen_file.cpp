#include "trawl/screen_file.hpp"

#include <cmath>
#include <cstring>

#include "checksum.hpp"
#include "codes_format.hpp"
#include "mapped_file.hpp"
#include "row_codes.hpp"
#include "screen_format.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Throws kBadFile unless every field can be trusted and used as a size.
void check_header(const std::string& path, const ScreenHeader& header, int64_t file_bytes) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  if (std::memcmp(header.magic, kScreenMagic, sizeof header.magic) != 0) refuse("is not a screen file (wrong magic)");
  if (header.version != kScreenVersion) {
    refuse("is a screen file of version " + std::to_string(header.version) + ", this build reads version " +
           std::to_string(kScreenVersion) + "; make the screen again");
  }
  if (header.metric > static_cast<uint32_t>(Metric::kCosine)) refuse("unknown metric " + std::to_string(header.metric));
  const std::string shape = check_screen_shape(header.dimension, header.directions);
  if (!shape.empty()) refuse(shape);
  if (header.rows_per_block < 16 || header.rows_per_block % 16 != 0 || header.rows_per_block > 65536) {
    refuse("rows per block " + std::to_string(header.rows_per_block) + " is not a multiple of 16 in [16, 65536]");
  }
  if (header.turn != kTurnHadamardSigns) refuse("unknown turn " + std::to_string(header.turn));
  // The maker and verify_screen() know one turn; a search by another would compare differently turned vectors.
  if (header.sign_seed != kSignSeed) refuse("unknown seed of the turn's signs");
  if (!(header.defect >= 0 && header.defect <= kMaxScreenDefect)) refuse("the directions' defect is not in [0, 2^-10]");
  if (header.header_bytes != screen_header_bytes(header.dimension, header.directions)) refuse("header size is wrong");
  const ScreenBlockLayout layout(header.rows_per_block, header.directions);
  if (header.block_bytes != static_cast<uint64_t>(layout.bytes)) refuse("block size is wrong");
  if (static_cast<int64_t>(header.header_bytes) > file_bytes) refuse("is truncated inside its header");
}

}  // namespace

ScreenBlockLayout::ScreenBlockLayout(int64_t rows, int64_t directions) {
  int64_t at = rows * directions;
  const auto place = [&] {
    const int64_t here = at;
    at = round_up(at + rows * 4, 64);
    return here;
  };
  scale = place();
  rest = place();
  size = place();
  code_sum = place();
  bias = place();
  tail = at;
  bytes = at + static_cast<int64_t>(sizeof(CodesBlockTail));
}

std::string check_screen_shape(int64_t dimension, int64_t directions) {
  if (dimension < 1 || dimension > kMaxScreenDimension) {
    return "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxScreenDimension) + "]";
  }
  if (directions < 64 || directions % 64 != 0 || directions > kMaxScreenDirections || directions > dimension) {
    return std::to_string(directions) + " directions are not a multiple of 64 up to " +
           std::to_string(kMaxScreenDirections) + " and to the dimension, " + std::to_string(dimension);
  }
  return "";
}

uint64_t screen_header_bytes(int64_t dimension, int64_t directions) {
  return round_up(static_cast<int64_t>(sizeof(ScreenHeader)) + 4 * dimension * directions, 4096);
}

uint64_t screen_header_checksum(ScreenHeader header, const std::vector<float>& basis) {
  header.checksum = 0;
  return checksum64(basis.data(), basis.size() * 4, checksum64(&header, sizeof header));
}

ScreenHeader make_screen_header(const CodesFile& codes, int64_t directions, double defect, const std::vector<float>& basis) {
  ScreenHeader header = {};
  std::memcpy(header.magic, kScreenMagic, sizeof header.magic);
  header.version = kScreenVersion;
  header.metric = static_cast<uint32_t>(codes.metric());
  header.dimension = static_cast<uint32_t>(codes.dimension());
  header.directions = static_cast<uint32_t>(directions);
  header.rows_per_block = static_cast<uint32_t>(codes.rows_per_block());
  header.turn = kTurnHadamardSigns;
  header.sign_seed = kSignSeed;
  header.header_bytes = screen_header_bytes(codes.dimension(), directions);
  header.block_bytes = ScreenBlockLayout(codes.rows_per_block(), directions).bytes;
  header.defect = defect;
  header.codes_identity = codes.identity();
  header.checksum = screen_header_checksum(header, basis);
  return header;
}

uint64_t screen_block_checksum(const uint8_t* block, const ScreenBlockLayout& layout, uint64_t rows) {
  return checksum64(block, layout.tail, rows);
}

std::shared_ptr<const ScreenFile> ScreenFile::open(const std::string& path) {
  const auto file = MappedFile::open(path, 0, -1);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kBadFile, path + ": " + why); };
  ScreenHeader header;
  if (file->bytes() < static_cast<int64_t>(sizeof header)) {
    refuse("is " + std::to_string(file->bytes()) + " bytes long, too short for a screen file");
  }
  std::memcpy(&header, file->data(), sizeof header);
  check_header(path, header, file->bytes());

  std::shared_ptr<ScreenFile> screen(new ScreenFile);
  screen->basis_f32_.resize(size_t{header.dimension} * header.directions);
  std::memcpy(screen->basis_f32_.data(), file->data() + sizeof header, 4 * screen->basis_f32_.size());
  if (screen_header_checksum(header, screen->basis_f32_) != header.checksum) refuse("header checksum does not hold");
  if (first_not_finite(screen->basis_f32_.data(), static_cast<int64_t>(screen->basis_f32_.size())) >= 0) {
    refuse("a direction is not finite");
  }
  const int64_t body = file->bytes() - static_cast<int64_t>(header.header_bytes);
  const CodesFooter footer = read_codes_footer(path, file->data() + header.header_bytes, body, header.rows_per_block,
                                               static_cast<int64_t>(header.block_bytes));
  screen->file_ = file;
  screen->metric_ = static_cast<Metric>(header.metric);
  screen->dimension_ = header.dimension;
  screen->directions_ = header.directions;
  screen->rows_ = footer.rows;
  screen->rows_per_block_ = header.rows_per_block;
  screen->blocks_ = footer.blocks;
  screen->header_bytes_ = header.header_bytes;
  screen->block_bytes_ = header.block_bytes;
  screen->sign_seed_ = header.sign_seed;
  screen->codes_identity_ = header.codes_identity;
  screen->identity_ = header.checksum;
  screen->defect_ = header.defect;
  file->advise(MappedFile::Pattern::kHugePages);
  file->advise(MappedFile::Pattern::kWillNeed);
  return screen;
}

int64_t ScreenFile::bytes() const { return file_->bytes(); }

ScreenBlock ScreenFile::block(int64_t index) const {
  const ScreenBlockLayout layout(rows_per_block_, directions_);
  const uint8_t* base = file_->data() + header_bytes_ + index * block_bytes_;
  ScreenBlock block;
  block.first_row = index * rows_per_block_;
  block.rows = rows_ - block.first_row < rows_per_block_ ? rows_ - block.first_row : rows_per_block_;
  block.codes_i8 = reinterpret_cast<const int8_t*>(base);
  block.scale_f32 = reinterpret_cast<const float*>(base + layout.scale);
  block.rest_f32 = reinterpret_cast<const float*>(base + layout.rest);
  block.size_f32 = reinterpret_cast<const float*>(base + layout.size);
  block.code_sum_i32 = reinterpret_cast<const int32_t*>(base + layout.code_sum);
  block.bias_f32 = reinterpret_cast<const float*>(base + layout.bias);
  block.tail = reinterpret_cast<const CodesBlockTail*>(base + layout.tail);
  return block;
}

bool ScreenFile::block_checksum_holds(int64_t index) const {
  const ScreenBlock here = block(index);
  const ScreenBlockLayout layout(rows_per_block_, directions_);
  return here.tail->rows == static_cast<uint64_t>(here.rows) &&
         here.tail->checksum ==
             screen_block_checksum(reinterpret_cast<const uint8_t*>(here.codes_i8), layout, here.tail->rows);
}

}  // namespace trawl
