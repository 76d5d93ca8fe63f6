import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cudaFacts } from '../../src/encoder/inference/cuda-libraries.ts';

/** The GPUs that CUDA shows to this process, in its order, as `nvidia-smi` names them; none without a driver. */
export function gpuNames(): string[] {
  const visible = visibleDevices();
  if (visible === undefined) return query('name');
  const names: string[] = [];
  for (const device of visible) {
    const [name] = query('name', device);
    // As CUDA does: what is behind an entry that is no device is not visible either.
    if (name === undefined) break;
    names.push(name);
  }
  return names;
}

/** Free bytes of a CUDA device; undefined if `nvidia-smi` does not say it, as for a part of a GPU (MIG). */
export function freeMemory(device: number): number | undefined {
  const visible = visibleDevices();
  const named = visible === undefined ? String(device) : visible[device];
  const [free = ''] = named === undefined ? [] : query('memory.free', named);
  return /^\d+$/.test(free) ? Number(free) * 2 ** 20 : undefined;
}

/**
 * The entries of CUDA_VISIBLE_DEVICES, numbers or UUIDs, which number CUDA's devices; undefined if it is not set. `nvidia-smi` does not
 * read it. Both count in the order of the bus if CUDA_DEVICE_ORDER is PCI_BUS_ID, which scripts/checks/gpu.mjs sets.
 */
function visibleDevices(): string[] | undefined {
  const { CUDA_VISIBLE_DEVICES: text } = process.env;
  if (text === undefined) return undefined;
  const entries = text.split(',').map((entry) => entry.trim());
  const end = entries.findIndex((entry) => entry === '' || entry.startsWith('-'));
  return end < 0 ? entries : entries.slice(0, end);
}

/** A field of all GPUs, or of the one with this number or UUID. */
function query(field: string, device?: string): string[] {
  const { status, stdout } = spawnSync(
    'nvidia-smi',
    [...(device === undefined ? [] : ['-i', device]), `--query-gpu=${field}`, '--format=csv,noheader,nounits'],
    { encoding: 'utf8' },
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
    : `onnxruntime's CUDA provider is missing. ${reason}. Without internet here, see docs/gpu.md, “Bring CUDA to a machine without internet”, and pass --provider FOLDER.`;
}
