// Compiles the AMX kernel with emulated tiles, and its row tests with AVX-512: kEmulatedAmxVectorKernels.
#if defined(__x86_64__)
#define TRAWL_AMX_EMULATION
#define TRAWL_AMX_EMULATION_VECTORS
#include "../src/scan_amx.cpp"
#else
#include "kernels.hpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxVectorKernels;
const Kernels* const kEmulatedAmxVectorKernels = nullptr;
}  // namespace trawl
#endif
