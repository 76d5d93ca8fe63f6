import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cudaFacts } from '../../src/embedding/inference/cuda-libraries.ts';

/** The NVIDIA GPUs of the machine, as `nvidia-smi` names them; none without a driver. */
export function gpuNames(): string[] {
  return query('name');
}

/** Free bytes of a GPU. */
export function freeMemory(device: number): number {
  return Number(query('memory.free', device)[0]) * 2 ** 20;
}

function query(field: string, device?: number): string[] {
  const which = device === undefined ? [] : ['-i', String(device)];
  const { status, stdout } = spawnSync(
    'nvidia-smi',
    [...which, `--query-gpu=${field}`, '--format=csv,noheader,nounits'],
    {
      encoding: 'utf8',
    },
  );
  return status === 0 ? stdout.trim().split('\n') : [];
}

/** What the machine lacks for a first step on a GPU, and what to do; undefined if nothing is known to be missing. */
export function missingGpu(exists: (path: string) => boolean = existsSync): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return `onnxruntime-node runs on NVIDIA GPUs on Linux x64 only; this is ${process.platform} ${process.arch}.`;
  }
  if (!exists('/dev/nvidiactl')) {
    return (
      'No NVIDIA GPU: /dev/nvidiactl is missing. Run this on a machine with a GPU and its driver (nvidia-smi shows both), and ' +
      'in a container with the GPU passed to it (docker run --gpus all).'
    );
  }
  const { installed, reason } = cudaFacts(exists);
  return installed
    ? undefined
    : `onnxruntime's CUDA provider is missing. ${reason}. Without internet here, see docs/models.md, “Bring CUDA to a machine without internet”, and pass --provider FOLDER.`;
}
