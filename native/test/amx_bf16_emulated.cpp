// Compiles the products with AMX for emulated tiles: kEmulatedAmxBf16Products.
#include "encoder/products.hpp"
#if defined(__x86_64__)
namespace trawl::encoder {
extern const Products kEmulatedAmxBf16[2];
}
#define TRAWL_AMX_EMULATION
#define TRAWL_AMX_BF16_TABLES kEmulatedAmxBf16
#include "../src/encoder/products_amx.cpp"
namespace trawl::encoder {
extern const Products* const kEmulatedAmxBf16Products;
const Products* const kEmulatedAmxBf16Products = kEmulatedAmxBf16;
}  // namespace trawl::encoder
#else
namespace trawl::encoder {
extern const Products* const kEmulatedAmxBf16Products;
const Products* const kEmulatedAmxBf16Products = nullptr;
}  // namespace trawl::encoder
#endif
