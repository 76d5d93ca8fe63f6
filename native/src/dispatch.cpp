// Finds out which instruction sets the processor has and which registers the operating system saves.
#include "kernel_choice.hpp"
#include "trawl/error.hpp"
#include "trawl/isa.hpp"
#include "x86_features.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace trawl {

namespace {

struct Probe {
  IsaStatus status;
  const Kernels* kernels;
  KernelChoice alone;
};

#if defined(__x86_64__)

std::string missing_avx2(const X86& cpu) {
  if (!(cpu.leaf7_ebx >> 5 & 1)) return "the processor has no AVX2";
  if (!(cpu.leaf1_ecx >> 12 & 1)) return "the processor has no FMA";
  if (!cpu.os_saves(kYmmState)) return "the operating system does not save the AVX registers";
  return "";
}

std::string missing_vnni(const X86& cpu) {
  if (!(cpu.leaf7_ebx >> 16 & 1)) return "the processor has no AVX-512";
  if (!(cpu.leaf7_ebx >> 17 & 1) || !(cpu.leaf7_ebx >> 30 & 1) || !(cpu.leaf7_ebx >> 31 & 1)) {
    return "the processor has no AVX-512 DQ, BW and VL";
  }
  if (!(cpu.leaf7_ecx >> 11 & 1)) return "the processor has no AVX-512 VNNI";
  if (!(cpu.leaf1_ecx >> 12 & 1)) return "the processor has no FMA";
  if (!cpu.os_saves(kZmmState)) return "the operating system does not save the AVX-512 registers";
  return "";
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

#endif

std::vector<Probe> probe() {
  std::vector<Probe> found;
  const auto add = [&](const char* name, const Kernels* kernels, const std::string& missing, const char* having) {
    const bool available = kernels != nullptr && missing.empty();
    const Kernels* const usable = available ? kernels : nullptr;
    found.push_back({{name, available, available ? having : missing}, usable, {usable, usable, 0, 0}});
  };
#if defined(__x86_64__)
  const X86 cpu;
  add("amx", kAmxKernels, missing_amx(cpu), "int8 tiles, 16,384 products per instruction");
  add("avx512-vnni", kAvx512VnniKernels, missing_vnni(cpu), "vpdpbusd, 64 products per instruction");
  add("avx2", kAvx2Kernels, missing_avx2(cpu), "vpmaddubsw, 32 products in three instructions");
#else
  for (const char* name : {"amx", "avx512-vnni", "avx2"}) add(name, nullptr, "not an x86-64 processor", "");
#endif
#if defined(__aarch64__)
  std::string missing;
#if defined(__linux__)
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  if (!(getauxval(AT_HWCAP) & kDotProduct)) missing = "the processor has no dot product instructions";
#endif
  add("neon", kNeonKernels, missing, "sdot, 16 products per instruction");
#else
  add("neon", nullptr, "not an AArch64 processor", "");
#endif
  add("serial", kSerialKernels, "", "plain C++, the reference");
  return found;
}

const std::vector<Probe>& probed() {
  static const std::vector<Probe> once = probe();
  return once;
}

const Probe& select(const std::string& name) {
  std::string available;
  for (const Probe& isa : probed()) {
    if (isa.kernels == nullptr) {
      if (isa.status.name == name) {
        throw Error(ErrorCode::kIsaUnavailable, "instruction set '" + name + "': " + isa.status.reason);
      }
      continue;
    }
    if (name.empty() || isa.status.name == name) return isa;
    available += (available.empty() ? "" : ", ") + isa.status.name;
  }
  throw Error(ErrorCode::kIsaUnavailable, "instruction set '" + name + "' is unknown; available on this machine: " + available);
}

}  // namespace

std::vector<IsaStatus> list_isas() {
  std::vector<IsaStatus> list;
  for (const Probe& isa : probed()) list.push_back(isa.status);
  return list;
}

const Kernels& select_kernels(const std::string& name) { return *select(name).kernels; }

const KernelChoice& choose_kernels(const std::string& name) {
  const Probe& isa = select(name);
  // Every machine with AMX has AVX-512 VNNI (missing_amx).
  if (!name.empty() || isa.kernels != kAmxKernels) return isa.alone;
  static const KernelChoice timed = time_kernels(*kAvx512VnniKernels, *kAmxKernels);
  return timed;
}

ChosenIsas chosen_isas(const std::string& name) {
  const KernelChoice& choice = choose_kernels(name);
  const auto from = [](int64_t queries) { return queries == kNever ? -1 : queries; };
  return {kernels_name(*choice.few), kernels_name(*choice.many), from(choice.wide_from), from(choice.narrow_from)};
}

const char* kernels_name(const Kernels& kernels) { return kernels.name; }

}  // namespace trawl
