// Which instruction set scans the codes. Results are the same bits for all of them; only the time differs.
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

// All instruction sets this library knows, fastest first. Probes the machine once, at the first call.
std::vector<IsaStatus> list_isas();

// The kernels named, or the fastest available for an empty name.
// Throws kIsaUnavailable with the list of what is available.
const Kernels& select_kernels(const std::string& name = "");
const char* kernels_name(const Kernels& kernels);

}  // namespace trawl
