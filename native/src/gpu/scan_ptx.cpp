// Places the file into the binary. The assembler reads it relative to the folder native/, where make runs the compiler.
#include "../generated/scan_ptx.hpp"

#if defined(__APPLE__)
#define TRAWL_SECTION ".const_data"
#define TRAWL_SYMBOL "_trawl_scan_ptx"
#define TRAWL_END ".text"
#else
#define TRAWL_SECTION ".pushsection .rodata"
#define TRAWL_SYMBOL "trawl_scan_ptx"
#define TRAWL_END ".popsection"
#endif

asm(TRAWL_SECTION
    "\n"
    ".globl " TRAWL_SYMBOL
    "\n"
#if !defined(__APPLE__)
    ".hidden " TRAWL_SYMBOL "\n"
#else
    ".private_extern " TRAWL_SYMBOL "\n"
#endif
    TRAWL_SYMBOL
    ":\n"
    ".incbin \"generated/scan.ptx\"\n"
    ".byte 0\n" TRAWL_END "\n");

extern "C" __attribute__((visibility("hidden"))) const char trawl_scan_ptx[];

namespace trawl::cuda {

const char* scan_ptx() { return trawl_scan_ptx; }

}  // namespace trawl::cuda
