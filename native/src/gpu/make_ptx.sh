#!/bin/sh
# Compiles scan.cu to scan_ptx.hpp with nvcc 13.0 (`pip download --no-deps nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88
# nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96`, unpacked into one folder). NVCC names the compiler.
set -eu
cd "$(dirname "$0")"
ptx=$(mktemp)
trap 'rm -f "$ptx"' EXIT
"${NVCC:-nvcc}" -std=c++17 -O3 -arch=compute_80 -ptx scan.cu -o "$ptx"
python3 - "$ptx" <<'PYTHON'
import re, sys
sources = b''.join(open(name, 'rb').read() for name in ('cuda_kernels.hpp', 'device.hpp', 'scan.cu'))
checksum = 0xcbf29ce484222325  # FNV-1a
for byte in sources:
    checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
lines = open(sys.argv[1]).read().split('\n')
# Version 7.0 has all instructions in use, so that drivers since CUDA 11.0 accept the file.
lines = ['.version 7.0' if line.startswith('.version') else line for line in lines]
lines = [re.sub(r'[ \t]+', ' ', re.sub(r'//.*', '', line)).strip() for line in lines]
text = '\n'.join(line.replace(', ', ',') for line in lines if line) + '\n'
with open('scan_ptx.hpp', 'w') as out:
    out.write('// Made of scan.cu by make_ptx.sh. Do not edit.\n#pragma once\n#include <string>\n\nnamespace trawl::cuda {\n\n')
    out.write('// FNV-1a of cuda_kernels.hpp, device.hpp and scan.cu together.\n')
    out.write(f'constexpr unsigned long long kPtxOf = {checksum}ull;\n\n')
    out.write('inline std::string scan_ptx() {\n  std::string text;\n')
    for at in range(0, len(text), 16000):
        out.write(f'  text += R"ptx({text[at:at + 16000]})ptx";\n')
    out.write('  return text;\n}\n\n}  // namespace trawl::cuda\n')
PYTHON
