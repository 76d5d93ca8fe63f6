// Compiles the AMX kernel and the products of encoders with emulated tiles: kEmulatedAmxKernels, kEmulatedAmxByteProducts.
#if defined(__x86_64__)
#define TRAWL_AMX_EMULATION
#include "dense/kernels/scan_amx.cpp"
#include "encoder/bytes_amx.cpp"
#else
#include "dense/kernels/kernels.hpp"
#include "encoder/byte_products.hpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxKernels;
const Kernels* const kEmulatedAmxKernels = nullptr;
namespace encoder {
extern const ByteProducts* const kEmulatedAmxByteProducts;
const ByteProducts* const kEmulatedAmxByteProducts = nullptr;
}  // namespace encoder
}  // namespace trawl
#endif
