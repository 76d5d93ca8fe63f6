// The same with AVX-512 for everything but tiles: kEmulatedAmxVectorKernels, kEmulatedAmxVectorByteProducts.
#if defined(__x86_64__)
#define TRAWL_AMX_EMULATION
#define TRAWL_AMX_EMULATION_VECTORS
#include "dense/kernels/scan_amx.cpp"
#include "encoder/bytes_amx.cpp"
#else
#include "dense/kernels/kernels.hpp"
#include "encoder/byte_products.hpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxVectorKernels;
const Kernels* const kEmulatedAmxVectorKernels = nullptr;
namespace encoder {
extern const ByteProducts* const kEmulatedAmxVectorByteProducts;
const ByteProducts* const kEmulatedAmxVectorByteProducts = nullptr;
}  // namespace encoder
}  // namespace trawl
#endif
