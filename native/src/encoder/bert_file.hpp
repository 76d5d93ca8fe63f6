// The file with the weights of a BERT encoder, little-endian. Parts begin at multiples of 64 bytes, with zeros between them.
//
//   header      128 bytes: "TRAWLBRT" (products in bfloat16) or "TRAWLBI8" (in int8), version, then the fields of BertShape in their
//               order, zeros
//   words       float32[vocabulary][hidden]
//   positions   float32[positions][hidden]
//   types       float32[token_types][hidden]; none if token_types is 0
//   norm        float32[2][hidden]: factors, then summands
//   per layer:
//     attention         dense [hidden][3*hidden]: query, key and value side by side
//     attention output  dense [hidden][hidden]; norm float32[2][hidden]
//     intermediate      dense [hidden][intermediate]
//     output            dense [intermediate][hidden]; norm float32[2][hidden]
//
//   dense [depth][columns] in bfloat16: packed bfloat16[depth*columns]; float32[columns] summands
//                          in int8: packed int8[depth*columns]; int32[columns]: -128 times the sum of each column's codes;
//                          float32[columns] scales; float32[columns] summands
//
// Packed matrices are described in products.hpp and byte_products.hpp. indexer/model-import/native-weights.ts and
// indexer/model-import/families/bert-native.ts write the file.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "trawl/bert_encoder.hpp"

namespace trawl::encoder {

constexpr char kMagic[] = "TRAWLBRT";
constexpr char kByteMagic[] = "TRAWLBI8";
constexpr int32_t kVersion = 1;
constexpr int64_t kHeaderBytes = 128;

struct Dense {
  const uint16_t* packed;  // in bfloat16
  // in int8
  const int8_t* codes;
  const int32_t* offset_corrections;
  const float* scales;

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
  WeightType weights;
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
