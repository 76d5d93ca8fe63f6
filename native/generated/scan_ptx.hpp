// Made of scan.cu by make_ptx.sh. Do not edit.
#pragma once

namespace trawl::cuda {

// The kernels in generated/scan.ptx, which src/gpu/scan_ptx.cpp places into the binary; ends with NUL.
const char* scan_ptx();
// FNV-1a of cuda_kernels.hpp, device.hpp and scan.cu together, and of scan.ptx.
constexpr unsigned long long kPtxOf = 3895556251985660690ull, kPtxText = 10321049647596074347ull;

}  // namespace trawl::cuda
