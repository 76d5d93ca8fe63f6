// The compiled kernels of scan.cu: generated/scan.ptx, whose second line has the hashes of its sources and of its text.
#pragma once

namespace trawl::cuda {

// Ends with NUL.
const char* scan_ptx();

}  // namespace trawl::cuda
