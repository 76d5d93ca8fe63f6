import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { TrawlError } from '../../errors.ts';

/** The script of onnxruntime-node that downloads its CUDA libraries, and its flag. */
const INSTALL_SCRIPT = 'script/install.js';
const INSTALL_FLAG = '--onnxruntime-node-install=cuda12';
/** Installed beside onnxruntime's own library; not part of the npm package. */
const CUDA_LIBRARY = 'libonnxruntime_providers_cuda.so';
/** What the CUDA library is linked with. */
const NEEDED = 'an NVIDIA driver, CUDA 12 (libcublas, libcublasLt, libcudart, libcufft, libcurand) and cuDNN 9';

export interface CudaFacts {
  /** Whether onnxruntime's CUDA libraries are installed; a session on a device may still fail. */
  readonly installed: boolean;
  /** Text for the user: what was found, or what is missing and the command that installs it. */
  readonly reason: string;
}

/** Looks for the CUDA libraries and a driver, without opening a device. Tests replace `exists`. */
export function cudaFacts(exists: (path: string) => boolean = existsSync): CudaFacts {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return {
      installed: false,
      reason: `onnxruntime-node supports CUDA only on Linux x64; this is ${process.platform} ${process.arch}`,
    };
  }
  const package_ = packageFolder();
  const library = join(package_, 'bin', 'napi-v6', 'linux', 'x64', CUDA_LIBRARY);
  if (!exists(library)) {
    return { installed: false, reason: `${library} is missing; install it with: ${installCommand(package_)}` };
  }
  if (!exists('/dev/nvidiactl')) {
    return {
      installed: true,
      reason: 'the CUDA libraries are installed, but no NVIDIA driver was found (/dev/nvidiactl is missing)',
    };
  }
  return { installed: true, reason: `the CUDA libraries and a driver are installed; they also need ${NEEDED}` };
}

/** The error for a requested CUDA device that cannot be used. The encoder never falls back to the CPU silently. */
export function cudaUnavailable(device: number, reason: string, cause?: unknown): TrawlError {
  const command = installCommand(packageFolder());
  const how = reason.includes(command) ? '' : ` Install onnxruntime's CUDA libraries with: ${command}.`;
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} cannot be used: ${reason}.${how} The command downloads from nuget.org. The libraries need ${NEEDED} on ` +
      'LD_LIBRARY_PATH. Without a GPU use --device cpu.',
    { details: { device, command }, cause },
  );
}

/** The error for a CUDA device whose free memory does not hold the model. */
export function cudaFull(device: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} has not enough free memory for the model: ${reason}. End other programs on it (nvidia-smi lists them), use ` +
      'another device, or load fewer copies of the model (--workers 1).',
    { details: { device }, cause },
  );
}

function installCommand(folder: string): string {
  return `node ${join(folder, INSTALL_SCRIPT)} ${INSTALL_FLAG}`;
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
}
