import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { TrawlError } from '../errors.ts';

/** The script of the installed onnxruntime-node that fetches its CUDA libraries, and the flag that asks for them. */
const INSTALL_SCRIPT = 'script/install.js';
const INSTALL_FLAG = '--onnxruntime-node-install=cuda12';
/** Beside onnxruntime's own library; the npm package is too small for it. */
const CUDA_LIBRARY = 'libonnxruntime_providers_cuda.so';
/** What that library is linked with. */
const NEEDED = 'an NVIDIA driver, CUDA 12 (libcublas, libcublasLt, libcudart, libcufft, libcurand) and cuDNN 9';

export interface CudaFacts {
  /** Whether onnxruntime's CUDA libraries are installed. That a session can be made on a device is not said. */
  readonly installed: boolean;
  /** For a person: what is there, or what is missing and the command that installs it. */
  readonly reason: string;
}

/** What can be said of CUDA without asking a device. `exists` is replaceable for tests. */
export function cudaFacts(exists: (path: string) => boolean = existsSync): CudaFacts {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return {
      installed: false,
      reason: `onnxruntime-node has CUDA for Linux on x64 alone; this is ${process.platform} on ${process.arch}`,
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
      reason: 'its CUDA libraries are there, but no NVIDIA driver (/dev/nvidiactl is missing)',
    };
  }
  return { installed: true, reason: `its CUDA libraries and a driver are there; it also needs ${NEEDED}` };
}

/** CUDA was asked for and is not to be had: never a silent run on the CPU. */
export function cudaUnavailable(device: number, reason: string, cause?: unknown): TrawlError {
  const command = installCommand(packageFolder());
  const how = reason.includes(command) ? '' : ` onnxruntime's CUDA libraries are installed by: ${command}.`;
  return new TrawlError(
    'DEVICE_UNAVAILABLE',
    `cuda:${device} cannot be used: ${reason}.${how} That is a download from nuget.org; the libraries need ${NEEDED}, found ` +
      'by LD_LIBRARY_PATH. Without them use --device cpu.',
    { details: { device, command }, cause },
  );
}

function installCommand(folder: string): string {
  return `node ${join(folder, INSTALL_SCRIPT)} ${INSTALL_FLAG}`;
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
}
