import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeFlatHeader, encodeFp16Header } from '../../../src/engine/vectors/faiss-format.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

/** Random multiples of 1/128 in [−1, 1), which float16 represents exactly. */
export function halfValues(rows: number, dimension: number, seed = 1): Float32Array {
  const random = seededRandom(seed);
  return Float32Array.from({ length: rows * dimension }, () => (Math.floor(random() * 256) - 128) / 128);
}

export function bytesOf(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

/** Float16 bits of values that are multiples of 1/128 below 1. */
function halfBytes(values: Float32Array): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [i, value] of values.entries()) {
    const exponent = value === 0 ? 0 : Math.floor(Math.log2(Math.abs(value)));
    const fraction = value === 0 ? 0 : Math.abs(value) / 2 ** exponent - 1;
    const bits = value === 0 ? 0 : ((exponent + 15) << 10) | (fraction * 1024);
    bytes.writeUInt16LE(bits | (value < 0 ? 0x8000 : 0), 2 * i);
  }
  return bytes;
}

export interface NpyHeader {
  readonly version?: 1 | 2 | 3;
  readonly descr?: string;
  readonly fortranOrder?: boolean;
  readonly shape?: string;
}

export function npyHeader({ version = 1, descr = "'<f4'", fortranOrder = false, shape = '' }: NpyHeader): Buffer {
  const text = `{'descr': ${descr}, 'fortran_order': ${fortranOrder ? 'True' : 'False'}, 'shape': (${shape}), }`;
  const begin = version === 1 ? 10 : 12;
  const padded = Buffer.from(`${text.padEnd(Math.ceil((begin + text.length + 1) / 64) * 64 - begin - 1)}\n`);
  const length = Buffer.alloc(begin - 8);
  if (version === 1) length.writeUInt16LE(padded.length);
  else length.writeUInt32LE(padded.length);
  return Buffer.concat([Buffer.from([0x93]), Buffer.from('NUMPY'), Buffer.from([version, 0]), length, padded]);
}

export const FILE_TYPES = ['faiss', 'faiss-fp16', 'npy', 'npy-fp16', 'memmap', 'memmap-fp16'] as const;
export type FileType = (typeof FILE_TYPES)[number];

export function fileBytes(fileType: FileType, values: Float32Array, dimension: number): Buffer {
  const rows = values.length / dimension;
  const shape = `${rows}, ${dimension}`;
  const header = { rows, dimension, metric: 'inner-product' } as const;
  switch (fileType) {
    case 'faiss':
      return Buffer.concat([encodeFlatHeader(header), bytesOf(values)]);
    case 'faiss-fp16':
      return Buffer.concat([encodeFp16Header(header), halfBytes(values)]);
    case 'npy':
      return Buffer.concat([npyHeader({ shape }), bytesOf(values)]);
    case 'npy-fp16':
      return Buffer.concat([npyHeader({ shape, descr: "'<f2'" }), halfBytes(values)]);
    case 'memmap':
      return bytesOf(values);
    case 'memmap-fp16':
      return halfBytes(values);
  }
}

/** Writes the bytes as one file, or split at `cuts` into the parts `part_aa`, `part_ab`, …. Returns the paths. */
export function writeVectors(folder: string, name: string, bytes: Uint8Array, cuts: readonly number[] = []): string[] {
  const ends = [...cuts, bytes.length];
  return ends.map((end, i) => {
    const path = join(folder, ends.length === 1 ? name : `part_a${String.fromCharCode(97 + i)}`);
    writeFileSync(path, bytes.subarray(ends[i - 1] ?? 0, end));
    return path;
  });
}

/** The joined bytes of the segments, read without the code under test. */
export function segmentBytes(segments: readonly { path: string; offset: number; bytes: number }[]): Buffer {
  return Buffer.concat(segments.map(({ path, offset, bytes }) => readFileSync(path).subarray(offset, offset + bytes)));
}
