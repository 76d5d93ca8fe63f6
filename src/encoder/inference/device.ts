import type { FolderModelIdentity } from '../identity/model-identity.ts';
import { invalidConfig } from '../model/json-file.ts';

/** Where a model runs: null for the CPU, else the numbers of the CUDA devices, each at most once. */
export type CudaDevices = readonly number[] | null;

/** Parses `cpu`, `cuda` (the first device), `cuda:1` or `cuda:0,cuda:2`. Throws CONFIG_INVALID. */
export function parseDevice(text: string): CudaDevices {
  if (text === 'cpu') return null;
  const numbers = text.split(',').map((part) => {
    const match = /^cuda(?::(\d{1,3}))?$/.exec(part.trim());
    return match === null ? Number.NaN : Number(match[1] ?? 0);
  });
  if (numbers.every(Number.isInteger) && new Set(numbers).size === numbers.length) return numbers;
  throw invalidConfig(
    `device is ${JSON.stringify(text)}; expected cpu, cuda, or CUDA devices such as cuda:0 or cuda:0,cuda:1, each once.`,
  );
}

/** On a GPU, the last bits of a vector depend on its batch, because CUDA libraries choose algorithms by the batch's shape. */
export function identityOn(devices: CudaDevices, identity: FolderModelIdentity): FolderModelIdentity {
  return devices === null ? identity : { ...identity, batchInvariant: false };
}
