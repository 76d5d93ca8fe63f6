#include "base/x86_features.hpp"

#if defined(__x86_64__)
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trawl {

std::string missing_f16c(const X86& cpu) {
  if (!(cpu.leaf1_ecx >> 29 & 1)) return "the processor has no F16C";
  return cpu.os_saves(kYmmState) ? "" : "the operating system does not save the AVX registers";
}

std::string missing_avx2(const X86& cpu) {
  if (!(cpu.leaf7_ebx >> 5 & 1)) return "the processor has no AVX2";
  if (!(cpu.leaf1_ecx >> 12 & 1)) return "the processor has no FMA";
  if (!cpu.os_saves(kYmmState)) return "the operating system does not save the AVX registers";
  return "";
}

std::string missing_avx512(const X86& cpu) {
  if (!(cpu.leaf7_ebx >> 16 & 1)) return "the processor has no AVX-512";
  if (!(cpu.leaf7_ebx >> 17 & 1) || !(cpu.leaf7_ebx >> 30 & 1) || !(cpu.leaf7_ebx >> 31 & 1)) {
    return "the processor has no AVX-512 DQ, BW and VL";
  }
  if (!(cpu.leaf1_ecx >> 12 & 1)) return "the processor has no FMA";
  if (!cpu.os_saves(kZmmState)) return "the operating system does not save the AVX-512 registers";
  return "";
}

std::string missing_vnni(const X86& cpu) {
  const std::string avx512 = missing_avx512(cpu);
  if (!avx512.empty()) return avx512;
  return cpu.leaf7_ecx >> 11 & 1 ? "" : "the processor has no AVX-512 VNNI";
}

std::string missing_avx512_bf16(const X86& cpu) {
  const std::string avx512 = missing_avx512(cpu);
  if (!avx512.empty()) return avx512;
  return cpu.leaf7_1_eax >> 5 & 1 ? "" : "the processor has no AVX-512 BF16";
}

std::string missing_amx(const X86& cpu) {
  if (!(cpu.leaf7_edx >> 24 & 1) || !(cpu.leaf7_edx >> 25 & 1)) return "the processor has no AMX int8 tiles";
  const std::string vnni = missing_vnni(cpu);
  if (!vnni.empty()) return vnni;
  if (!cpu.os_saves(kTileState)) return "the operating system does not save the tile registers";
#if defined(__linux__)
  // On Linux a process must request the 8 KB of tile state once.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) {
    return "the kernel refused the tile registers (arch_prctl ARCH_REQ_XCOMP_PERM)";
  }
  return "";
#else
  return "AMX is supported only on Linux";
#endif
}

}  // namespace trawl
#endif
