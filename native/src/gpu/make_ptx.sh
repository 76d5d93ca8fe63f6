#!/bin/sh
# Compiles scan.cu to generated/scan.ptx with nvcc 13.0 (`pip download --no-deps nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88
# nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96`, unpacked into one folder). NVCC names the compiler.
set -eu
cd "$(dirname "$0")"
ptx=$(mktemp)
trap 'rm -f "$ptx"' EXIT
"${NVCC:-nvcc}" -std=c++17 -O3 -arch=compute_80 -ptx scan.cu -o "$ptx"
python3 - "$ptx" <<'PYTHON'
import re, sys
def fnv1a(data):
    checksum = 0xcbf29ce484222325
    for byte in data:
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return checksum
sources = b''.join(open(name, 'rb').read() for name in ('cuda_kernels.hpp', 'device.hpp', 'scan.cu'))
lines = open(sys.argv[1]).read().split('\n')
# Version 7.0 has all instructions in use, so that drivers since CUDA 11.0 accept the file.
lines = ['.version 7.0' if line.startswith('.version') else line for line in lines]
lines = [re.sub(r'[ \t]+', ' ', re.sub(r'//.*', '', line)).strip() for line in lines]
text = '\n'.join(line.replace(', ', ',') for line in lines if line) + '\n'
with open('../../generated/scan.ptx', 'w') as out:
    out.write(text)
with open('../../generated/scan_ptx.hpp', 'w') as out:
    out.write(f'''// Made of scan.cu by make_ptx.sh. Do not edit.
#pragma once

namespace trawl::cuda {{

// The kernels in generated/scan.ptx, which src/gpu/scan_ptx.cpp places into the binary; ends with NUL.
const char* scan_ptx();
// FNV-1a of cuda_kernels.hpp, device.hpp and scan.cu together, and of scan.ptx.
constexpr unsigned long long kPtxOf = {fnv1a(sources)}ull, kPtxText = {fnv1a(text.encode())}ull;

}}  // namespace trawl::cuda
''')
PYTHON
