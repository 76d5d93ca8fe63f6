// Compiles the AMX kernel with emulated tiles, and its row tests with AVX-512: kEmulatedAmxVectorKernels, the variants without and with
// tests of whole tiles.
#include "kernels.hpp"
#if defined(__x86_64__)
namespace trawl {
extern const Kernels kEmulatedAmxVectors[5];
}
#define TRAWL_AMX_EMULATION
#define TRAWL_AMX_EMULATION_VECTORS
#define TRAWL_AMX_TABLES kEmulatedAmxVectors
#include "../src/scan_amx.cpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxVectorKernels;
const Kernels* const kEmulatedAmxVectorKernels = kEmulatedAmxVectors;
}  // namespace trawl
#else
namespace trawl {
extern const Kernels* const kEmulatedAmxVectorKernels;
const Kernels* const kEmulatedAmxVectorKernels = nullptr;
}  // namespace trawl
#endif
