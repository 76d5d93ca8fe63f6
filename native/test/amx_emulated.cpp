// Compiles the AMX kernel with emulated tiles: kEmulatedAmxKernels.
#include "kernels.hpp"
#if defined(__x86_64__)
namespace trawl {
extern const Kernels kEmulatedAmx[5];
}
#define TRAWL_AMX_EMULATION
#define TRAWL_AMX_TABLES kEmulatedAmx
#include "../src/scan_amx.cpp"
namespace trawl {
extern const Kernels* const kEmulatedAmxKernels;
const Kernels* const kEmulatedAmxKernels = kEmulatedAmx;
}  // namespace trawl
#else
namespace trawl {
extern const Kernels* const kEmulatedAmxKernels;
const Kernels* const kEmulatedAmxKernels = nullptr;
}  // namespace trawl
#endif
