// Finds out which instruction sets of searches this machine has.
#include "base/x86_features.hpp"
#include "dense/kernels/kernel_choice.hpp"
#include "trawl/error.hpp"
#include "trawl/isa.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace trawl {

namespace {

struct Probe {
  IsaStatus status;
  const Kernels* kernels;
  KernelChoice alone;
};

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
  add("avx2", kAvx2Kernels, missing_avx2(cpu), "vpmaddubsw, 64 products in five instructions");
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
  return {kernels_name(*choice.small_batch), kernels_name(*choice.large_batch), from(choice.wide_from), from(choice.narrow_from)};
}

const char* kernels_name(const Kernels& kernels) { return kernels.name; }

}  // namespace trawl
