// What an x86-64 processor has, and which registers the operating system saves.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>
#include <string>

namespace trawl {

struct X86 {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
  uint64_t os_state = 0;  // XCR0: the registers that the operating system saves on a context switch

  X86() {
    uint32_t a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) leaf1_ecx = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) leaf7_ebx = b, leaf7_ecx = c, leaf7_edx = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) leaf7_1_eax = a;
    if (leaf1_ecx >> 27 & 1) {  // OSXSAVE
      uint32_t low, high;
      __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      os_state = static_cast<uint64_t>(high) << 32 | low;
    }
  }
  bool os_saves(uint64_t mask) const { return (os_state & mask) == mask; }
};

constexpr uint64_t kYmmState = 0x6, kZmmState = 0xE6, kTileState = 0x60000;

// What an instruction set lacks on this machine; empty if it can be used. missing_amx() asks Linux for the registers of tiles.
std::string missing_f16c(const X86& cpu);
std::string missing_avx2(const X86& cpu);
std::string missing_avx512(const X86& cpu);  // with DQ, BW and VL
std::string missing_vnni(const X86& cpu);
std::string missing_avx512_bf16(const X86& cpu);
std::string missing_amx(const X86& cpu);

}  // namespace trawl
#endif
