import { TrawlError } from '../errors.ts';

/** Where a model runs: null for the processor, else the numbers of the CUDA devices, each at most once. */
export type CudaDevices = readonly number[] | null;

/** `cpu`, `cuda` (the first device), `cuda:1`, `cuda:0,cuda:2`. Throws CONFIG_INVALID. */
export function parseDevice(text: string): CudaDevices {
  if (text === 'cpu') return null;
  const numbers = text.split(',').map((part) => {
    const match = /^cuda(?::(\d{1,3}))?$/.exec(part.trim());
    return match === null ? Number.NaN : Number(match[1] ?? 0);
  });
  if (numbers.every(Number.isInteger) && new Set(numbers).size === numbers.length) return numbers;
  throw new TrawlError(
    'CONFIG_INVALID',
    `device is ${JSON.stringify(text)}; it must be cpu, cuda, or CUDA devices such as cuda:0 or cuda:0,cuda:1, each once.`,
  );
}
