#include "encoder/bert_file.hpp"

#include <cmath>
#include <cstring>

#include "encoder/products.hpp"
#include "trawl/error.hpp"

namespace trawl::encoder {

namespace {

// Gives out the parts of the file in order.
class Parts {
 public:
  Parts(const MappedFile& file, const std::string& path) : file_(file), path_(path) {}

  void have(WeightType weights) { weights_ = weights; }

  const float* floats(int64_t count) { return reinterpret_cast<const float*>(take(count * 4)); }
  Dense dense(int64_t depth, int64_t columns) {
    Dense dense{};
    if (weights_ == WeightType::kInt8) {
      dense.codes = reinterpret_cast<const int8_t*>(take(depth * columns));
      dense.offset_corrections = reinterpret_cast<const int32_t*>(take(columns * 4));
      dense.scales = floats(columns);
    } else {
      dense.packed = reinterpret_cast<const uint16_t*>(take(depth * columns * 2));
    }
    dense.bias = floats(columns);
    return dense;
  }
  Norm norm(int64_t columns) {
    const float* both = floats(2 * columns);
    return {both, both + columns};
  }
  void finish() const {
    if (at_ != file_.bytes()) refuse("has " + std::to_string(file_.bytes()) + " bytes, but its header implies " + std::to_string(at_));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kBadFile, path_ + " " + what + "; import the model again");
  }

 private:
  const uint8_t* take(int64_t bytes) {
    const int64_t from = at_;
    at_ += (bytes + 63) / 64 * 64;
    if (at_ > file_.bytes()) refuse("is truncated: its header implies more than its " + std::to_string(file_.bytes()) + " bytes");
    return file_.data() + from;
  }

  const MappedFile& file_;
  const std::string& path_;
  WeightType weights_ = WeightType::kBfloat16;
  int64_t at_ = kHeaderBytes;
};

bool in_range(int32_t value, int32_t least, int32_t most) { return value >= least && value <= most; }

// indexer/model-import/families/bert-native.ts refuses the same shapes.
void check(const BertShape& s, const Parts& parts) {
  constexpr int32_t kMany = 1 << 24, kWide = 1 << 16;
  const bool sound = in_range(s.layers, 1, 4096) && in_range(s.hidden, kFloatLanes, kWide) && s.hidden % kFloatLanes == 0 &&
                     in_range(s.heads, 1, s.hidden) && s.hidden % s.heads == 0 && s.hidden / s.heads % kFloatLanes == 0 &&
                     in_range(s.intermediate, kFloatLanes, kWide) && s.intermediate % kFloatLanes == 0 &&
                     in_range(s.vocabulary, 1, kMany) && in_range(s.positions, 1, kMany) && in_range(s.token_types, 0, kMany) &&
                     in_range(s.activation, 0, 2) && in_range(s.position_padding, -1, kMany) && std::isfinite(s.epsilon) && s.epsilon >= 0;
  if (!sound) parts.refuse("has a header that no import writes");
}

}  // namespace

BertFile open_bert_file(const std::string& path) {
  BertFile file;
  file.mapping = MappedFile::open(path, 0, -1);
  Parts parts(*file.mapping, path);
  const uint8_t* header = file.mapping->data();
  const auto begins = [&](const char* magic) { return file.mapping->bytes() >= kHeaderBytes && std::memcmp(header, magic, 8) == 0; };
  if (!begins(kMagic) && !begins(kByteMagic)) parts.refuse("has no weights of an encoder");
  file.weights = begins(kByteMagic) ? WeightType::kInt8 : WeightType::kBfloat16;
  parts.have(file.weights);
  int32_t version;
  std::memcpy(&version, header + 8, 4);
  if (version != kVersion) parts.refuse("has version " + std::to_string(version) + ", expected " + std::to_string(kVersion));
  std::memcpy(&file.shape, header + 12, sizeof file.shape);
  const BertShape& s = file.shape;
  check(s, parts);
  file.words = parts.floats(int64_t{s.vocabulary} * s.hidden);
  file.positions = parts.floats(int64_t{s.positions} * s.hidden);
  file.types = s.token_types == 0 ? nullptr : parts.floats(int64_t{s.token_types} * s.hidden);
  file.norm = parts.norm(s.hidden);
  for (int32_t i = 0; i < s.layers; ++i) {
    BertLayer layer;
    layer.attention = parts.dense(s.hidden, 3 * s.hidden);
    layer.attention_output = parts.dense(s.hidden, s.hidden);
    layer.attention_norm = parts.norm(s.hidden);
    layer.intermediate = parts.dense(s.hidden, s.intermediate);
    layer.output = parts.dense(s.intermediate, s.hidden);
    layer.output_norm = parts.norm(s.hidden);
    file.layers.push_back(layer);
  }
  parts.finish();
  return file;
}

}  // namespace trawl::encoder
