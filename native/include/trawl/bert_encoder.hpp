// The forward pass of BERT encoders in bfloat16 or int8: token ids to the vectors of the last hidden state.
//
// Numerics in bfloat16. Weights of the matrix products and their inputs are bfloat16, rounded to the nearest even value. A sum of products
// is one float32 chain in the order that products.hpp defines; biases, softmax, layer norms and the activation are float32.
// In int8. Weights and inputs of the products with weights are int8 with a scale of each column and of each token, and their sums are
// exact (byte_products.hpp). Query, key and value are rounded to bfloat16, and attention is as in bfloat16.
//
// Every sum has a fixed order that depends on the shapes of the model and on the length of the text alone. So the vectors of a text have
// the same bits in any company, with every instruction set and on any number of threads.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trawl/isa.hpp"

namespace trawl::encoder {

struct BertShape {
  int32_t layers, hidden, heads, intermediate, vocabulary, positions, token_types;
  int32_t activation;        // Activation
  int32_t position_padding;  // id of the padding token, from whose successor positions count (RoBERTa); -1: positions from 0
  float epsilon;             // of the layer norms
};
enum class Activation : int32_t { kGelu, kGeluTanh, kRelu };
enum class WeightType { kBfloat16, kInt8 };

struct Products;      // src/encoder/products.hpp
struct ByteProducts;  // src/encoder/byte_products.hpp
struct ByteChoice;    // src/encoder/byte_choice.hpp

// All instruction sets of the products, fastest first.
std::vector<IsaStatus> list_products(WeightType weights = WeightType::kBfloat16);
// The products with that name; for an empty name, the first available ones. Throws kIsaUnavailable.
const Products& select_products(const std::string& name = "");
const ByteProducts& select_byte_products(const std::string& name = "");
// The products in bfloat16 for the attention beside `bytes`: the fastest that need no other instruction set.
const Products& products_beside(const ByteProducts& bytes);

// Weights in a file, mapped: all encoders of the machine share them. The file format is in src/encoder/bert_file.hpp.
class BertEncoder {
 public:
  // `isa`: name of the products; if empty, the fastest, in int8 for each number of tokens. Throws kReadFailed, kIsaUnavailable, and
  // kBadFile if the file is not one or has another size than its shape implies.
  explicit BertEncoder(const std::string& path, const std::string& isa = "");
  // Weights in int8, with products that outlive the encoder: for tests.
  BertEncoder(const std::string& path, const ByteChoice& bytes);
  ~BertEncoder();
  BertEncoder(const BertEncoder&) = delete;
  BertEncoder& operator=(const BertEncoder&) = delete;

  const BertShape& shape() const;
  WeightType weights() const;
  const char* isa() const;  // of the products with weights; for long texts, if short ones have another
  // Texts of equal length without padding. ids, types: texts x length; types may be null. hidden_f32: texts x length x hidden.
  // `threads` (at most 8, the calling one included) divide the columns of each product, the heads and the rows of the steps between;
  // the others sleep between runs. One run at a time. Throws kBadArgument for a length outside 1 to the positions of the model, and
  // for an id or a type outside its table; kFileChanged if the file is no longer what it was when it was opened.
  void run(const int32_t* ids, const int32_t* types, int64_t texts, int64_t length, float* hidden_f32, int64_t threads = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trawl::encoder
