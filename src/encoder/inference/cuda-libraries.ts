import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { TrawlError } from '../../base/errors.ts';

/** Where the user finds the commands that install the CUDA library. */
const HOW = 'docs/gpu.md (Libraries) has the commands that install it';
/** Installed beside onnxruntime's own library; not part of the npm package. */
const CUDA_LIBRARY = 'libonnxruntime_providers_cuda.so';
/** What a CUDA library may be linked with; its release decides, and whether from CUDA 12 or 13. */
const LINKED = /lib(?:cublasLt|cublas|cudart|cudnn|cufft|curand|nvrtc)\.so\.\d+/g;
/** The names of linked libraries are within this many bytes of the start of the file. */
const NAMES_BYTES = 256 * 1024;

export interface CudaFacts {
  /** Whether onnxruntime's CUDA libraries are installed; a session on a device may still fail. */
  readonly installed: boolean;
  /** Text for the user: what was found, or what is missing and what to do. */
  readonly reason: string;
}

/** Looks for the CUDA libraries and a driver, without opening a device. Tests replace the arguments. */
export function cudaFacts(exists: (path: string) => boolean = existsSync, library = cudaLibrary()): CudaFacts {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return {
      installed: false,
      reason: `onnxruntime-node supports CUDA only on Linux x64; this is ${process.platform} ${process.arch}`,
    };
  }
  if (!exists(library)) return { installed: false, reason: `${library} is missing; ${HOW}` };
  if (!exists('/dev/nvidiactl')) {
    return {
      installed: true,
      reason: 'the CUDA libraries are installed, but no NVIDIA driver was found (/dev/nvidiactl is missing)',
    };
  }
  return {
    installed: true,
    reason: `the CUDA libraries and a driver are installed; they also need ${needed(library)}`,
  };
}

function cudaLibrary(): string {
  return join(packageFolder(), 'bin', 'napi-v6', 'linux', 'x64', CUDA_LIBRARY);
}

/** What the installed CUDA library is linked with, as text for the user. */
function needed(library: string): string {
  const names = linkedLibraries(library);
  return names.length === 0
    ? 'an NVIDIA driver and the CUDA libraries of their release'
    : `an NVIDIA driver and ${names.join(', ')}`;
}

/** The CUDA libraries that a shared library names; none if it cannot be read. */
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

/** The error for a CUDA device whose free memory does not hold the model. */
export function cudaFull(device: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} has not enough free memory for the model: ${reason}. End other programs on it (nvidia-smi lists them), use ` +
      'another device, or load fewer copies of the model: --workers 1, in a server --encoder-threads 1.',
    { details: { device }, cause },
  );
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
}
