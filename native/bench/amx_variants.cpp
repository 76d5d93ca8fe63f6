// The variants of the AMX kernel, to measure them: kAmxVariants.
#include "kernels.hpp"
#if defined(__x86_64__)
namespace trawl {
extern const Kernels kAmxVariants[5];
}
#define TRAWL_AMX_TABLES kAmxVariants
#include "../src/scan_amx.cpp"
#endif
