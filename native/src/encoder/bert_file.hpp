// The file with the weights of a BERT encoder, little-endian. Parts begin at multiples of 64 bytes, with zeros between them.
//
//   header      128 bytes: "TRAWLBRT", version, then the fields of BertShape in their order, zeros
//   words       float32[vocabulary][hidden]
//   positions   float32[positions][hidden]
//   types       float32[token_types][hidden]; none if token_types is 0
//   norm        float32[2][hidden]: factors, then summands
//   per layer:
//     attention         packed [hidden][3*hidden]: query, key and value side by side; float32[3*hidden] summands
//     attention output  packed [hidden][hidden]; float32[hidden]; norm float32[2][hidden]
//     intermediate      packed [hidden][intermediate]; float32[intermediate]
//     output            packed [intermediate][hidden]; float32[hidden]; norm float32[2][hidden]
//
// Packed matrices are described in products.hpp. model-import/native-weights.ts and
// model-import/families/bert-native.ts write the file.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "mapped_file.hpp"
#include "trawl/bert_encoder.hpp"

namespace trawl::encoder {

constexpr char kMagic[] = "TRAWLBRT";
constexpr int32_t kVersion = 1;
constexpr int64_t kHeaderBytes = 128;

struct Dense {
  const uint16_t* packed;
  const float* bias;
};
struct Norm {
  const float* weight;
  const float* bias;
};
struct BertLayer {
  Dense attention, attention_output;
  Norm attention_norm;
  Dense intermediate, output;
  Norm output_norm;
};

struct BertFile {
  std::shared_ptr<const MappedFile> mapping;
  BertShape shape;
  const float* words;
  const float* positions;
  const float* types;
  Norm norm;
  std::vector<BertLayer> layers;
};

// Throws kReadFailed or kBadFile.
BertFile open_bert_file(const std::string& path);

}  // namespace trawl::encoder
