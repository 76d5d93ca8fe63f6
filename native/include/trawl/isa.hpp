// The instruction sets that can scan the codes. All give the same answer, bit for bit; only the time differs.
#pragma once
#include <string>
#include <vector>

namespace trawl {

struct Kernels;       // src/dense/kernels/kernels.hpp
struct KernelChoice;  // src/dense/kernels/kernel_choice.hpp

struct IsaStatus {
  std::string name;  // "serial", "avx2", "avx512-vnni", "amx", "neon"
  bool available;
  std::string reason;  // what was found, or what is missing
};

// All instruction sets that the engine supports, fastest first. The first call probes the machine.
std::vector<IsaStatus> list_isas();

// The kernels with that name; for an empty name, the fastest available ones.
// Throws kIsaUnavailable, with a list of the available names.
const Kernels& select_kernels(const std::string& name = "");
const char* kernels_name(const Kernels& kernels);

// The kernels of searches by their number of queries: with a name those alone. For an empty name the fastest for each number; if the
// machine has AMX, the first call times it against AVX-512 VNNI, about 50 ms. Throws as select_kernels().
const KernelChoice& choose_kernels(const std::string& name = "");

// Such a choice in words. Numbers of queries from which on `many` scans codes, and prefilters; -1: never.
struct ChosenIsas {
  std::string small_batch, large_batch;
  int64_t codes_from, prefilters_from;
};
ChosenIsas chosen_isas(const std::string& name = "");

}  // namespace trawl
