// The instruction sets that can scan the codes. All give the same answer, bit for bit; only the time differs.
#pragma once
#include <string>
#include <vector>

namespace trawl {

struct Kernels;  // src/kernels.hpp

struct IsaStatus {
  std::string name;    // "serial", "avx2", "avx512-vnni", "amx", "neon"
  bool available;
  std::string reason;  // what was found, or what is missing
};

// All instruction sets that the engine supports, fastest first. The first call probes the machine.
std::vector<IsaStatus> list_isas();

// The kernels with that name; for an empty name, the fastest available ones.
// Throws kIsaUnavailable, with a list of the available names.
const Kernels& select_kernels(const std::string& name = "");
const char* kernels_name(const Kernels& kernels);

}  // namespace trawl
