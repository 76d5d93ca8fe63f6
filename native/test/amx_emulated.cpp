// Compiles the AMX kernel with emulated tiles: kEmulatedAmxKernels.
#if defined(__x86_64__)
#define TRAWL_AMX_EMULATION
#include "../src/scan_amx.cpp"
#else
#include "kernels.hpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxKernels;
const Kernels* const kEmulatedAmxKernels = nullptr;
}  // namespace trawl
#endif
