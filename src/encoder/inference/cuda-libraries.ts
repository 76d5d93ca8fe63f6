import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { TrawlError } from '../../base/errors.ts';

const HOW = 'docs/gpu.md (Libraries) has the commands that install it';
/** Installed beside onnxruntime's own library; not part of the npm package. */
const CUDA_LIBRARY = 'libonnxruntime_providers_cuda.so';
/** Names of the libraries that a CUDA library is linked with. They depend on its release, and on CUDA 12 or 13. */
const LINKED = /lib(?:cublasLt|cublas|cudart|cudnn|cufft|curand|nvrtc)\.so\.\d+/g;
/** The names of linked libraries are within this many bytes of the start of the file. */
const NAMES_BYTES = 256 * 1024;

/** Looks for the CUDA libraries and a driver without opening a device. `reason` tells the user what is there, or missing and what to do. */
export function cudaFacts(
  exists: (path: string) => boolean = existsSync,
  library = cudaLibrary(),
): { readonly installed: boolean; readonly reason: string } {
  const { platform, arch } = process;
  if (platform !== 'linux' || arch !== 'x64') {
    const reason = `onnxruntime-node supports CUDA only on Linux x64; this is ${platform} ${arch}`;
    return { installed: false, reason };
  }
  if (!exists(library)) return { installed: false, reason: `${library} is missing; ${HOW}` };
  const reason = exists('/dev/nvidiactl')
    ? `the CUDA libraries and a driver are installed; they also need ${needed(library)}`
    : 'the CUDA libraries are installed, but no NVIDIA driver was found (/dev/nvidiactl is missing)';
  return { installed: true, reason };
}

function cudaLibrary(): string {
  const packageFile = createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
  return join(dirname(packageFile), 'bin', 'napi-v6', 'linux', 'x64', CUDA_LIBRARY);
}

/** The libraries that the installed CUDA library needs, as text for the user. */
function needed(library: string): string {
  return `an NVIDIA driver and ${linkedLibraries(library).join(', ') || 'the CUDA libraries of their release'}`;
}

function linkedLibraries(path: string): string[] {
  if (!existsSync(path)) return [];
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(NAMES_BYTES);
    const bytes = readSync(file, head, 0, NAMES_BYTES, 0);
    return [...new Set(head.toString('latin1', 0, bytes).match(LINKED) ?? [])].sort();
  } finally {
    closeSync(file);
  }
}

/** The error for a requested CUDA device that cannot be used. The encoder never falls back to the CPU silently. */
export function cudaUnavailable(device: number, reason: string, cause?: unknown): TrawlError {
  const library = cudaLibrary();
  const advice = existsSync(library)
    ? ` onnxruntime's CUDA library is there; it needs ${needed(library)} on LD_LIBRARY_PATH.`
    : reason.includes(HOW)
      ? ''
      : ` ${HOW}.`;
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} cannot be used: ${reason}.${advice} Without a GPU use --device cpu.`,
    { details: { device }, cause },
  );
}

export function cudaFull(device: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} does not have enough free memory for the model: ${reason}. End other programs on it (nvidia-smi lists them), use ` +
      'another device, or load fewer copies of the model: --workers 1, in a server --encoder-threads 1.',
    { details: { device }, cause },
  );
}
