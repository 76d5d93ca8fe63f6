// Compiles the products with AMX for emulated tiles: kEmulatedAmxBf16Products.
#if defined(__x86_64__)
#define TRAWL_AMX_EMULATION
#include "../src/encoder/products_amx.cpp"
#else
#include "encoder/products.hpp"
namespace trawl::encoder {
extern const Products* const kEmulatedAmxBf16Products;
const Products* const kEmulatedAmxBf16Products = nullptr;
}  // namespace trawl::encoder
#endif
