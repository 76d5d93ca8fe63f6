// The products in int8 that the tests compare: what this machine has, and AMX with emulated tiles.
#pragma once
#include <vector>

#include "encoder/byte_products.hpp"
#include "trawl/bert_encoder.hpp"

namespace trawl::encoder {

extern const ByteProducts *const kEmulatedAmxByteProducts, *const kEmulatedAmxVectorByteProducts;

// Those with AVX-512 only where the processor has it.
inline std::vector<const ByteProducts*> emulated_amx_products() {
  std::vector<const ByteProducts*> list;
  if (kEmulatedAmxByteProducts != nullptr) list.push_back(kEmulatedAmxByteProducts);
  for (const IsaStatus& one : list_products(WeightType::kInt8)) {
    if (one.available && one.name == "avx512-vnni") list.push_back(kEmulatedAmxVectorByteProducts);
  }
  return list;
}

inline std::vector<const ByteProducts*> tested_byte_products() {
  std::vector<const ByteProducts*> list = emulated_amx_products();
  for (const IsaStatus& one : list_products(WeightType::kInt8)) {
    if (one.available) list.push_back(&select_byte_products(one.name));
  }
  return list;
}

}  // namespace trawl::encoder
