// The variants of the products with AMX, to measure them: kAmxBf16Variants.
#include "encoder/products.hpp"
#if defined(__x86_64__)
namespace trawl::encoder {
extern const Products kAmxBf16Variants[2];
}
#define TRAWL_AMX_BF16_TABLES kAmxBf16Variants
#include "../src/encoder/products_amx.cpp"
#endif
