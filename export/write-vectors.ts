import { TrawlError } from '../src/errors.ts';
import type { IndexDirectory } from '../src/retrieval/index-directory.ts';
import { encodeFlatHeader, faissMetric } from '../src/vector-index/faiss-format.ts';
import { encodeFp16Header } from '../src/vector-index/faiss-fp16-format.ts';
import { type Kernel, loadKernel } from '../src/vector-index/kernel.ts';
import type { VectorDtype } from '../src/vector-index/vector-segments.ts';
import { type RowChoice, vectorBlocks } from './index-rows.ts';

/** Takes bytes in order; they may be overwritten once it resolves. */
export type Sink = (bytes: Uint8Array) => Promise<void>;

export interface VectorShape {
  /** Rows that go out. */
  readonly rows: number;
  readonly dtype: VectorDtype;
}

/** A FAISS flat index: `IxFI` or `IxF2`; of float16 a scalar-quantiser index, `IxSQ`. */
export function faissHeader({ source }: IndexDirectory, { rows, dtype }: VectorShape): Uint8Array {
  const header = { rows, dimension: source.dimension, metric: faissMetric(source.metric) };
  return dtype === 'float16' ? encodeFp16Header(header) : encodeFlatHeader(header);
}

/** The header of a .npy file, version 1.0, padded to 64 bytes as numpy does (numpy.lib.format). */
export function npyHeader({ source }: IndexDirectory, { rows, dtype }: VectorShape): Uint8Array {
  const descr = dtype === 'float16' ? '<f2' : '<f4';
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${rows}, ${source.dimension}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64;
  const header = Buffer.alloc(length, ' ');
  header.write('\x93NUMPY\x01\x00', 'latin1');
  header.writeUInt16LE(length - 10, 8);
  header.write(text, 10, 'latin1');
  header.write('\n', length - 1);
  return header;
}

/**
 * Writes the rows behind a header.
 *
 * @throws TrawlError NOT_SUPPORTED where a value is to be a float16 and is none, with row and column.
 */
export async function writeVectors(
  directory: IndexDirectory,
  dtype: VectorDtype,
  choice: RowChoice,
  sink: Sink,
): Promise<void> {
  const kernel = dtype === 'float16' ? kernelForFloat16() : undefined;
  let row = 0;
  for await (const values of vectorBlocks(directory, choice)) {
    const numbers = kernel === undefined ? values : toHalves(kernel, values, row, directory.source.dimension);
    await sink(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
    row += values.length / directory.source.dimension;
  }
}

function toHalves(kernel: Kernel, values: Float32Array, firstRow: number, dimension: number): Uint16Array {
  const bad = kernel.firstNotHalf(values);
  if (bad < values.length) {
    const [row, column] = [firstRow + Math.floor(bad / dimension), bad % dimension];
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The vector of row ${row} holds ${values[bad]} in column ${column}, which is no float16: --float16 is for vectors of ` +
        'float16 encoders, and loses nothing. Leave it out.',
      { details: { row, column } },
    );
  }
  return kernel.toHalves(values);
}

function kernelForFloat16(): Kernel {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  throw new TrawlError(
    'ENGINE_MISSING',
    `--float16 needs the native engine, which is not there (${loaded.reason}). npm run setup compiles it; or leave the option out.`,
  );
}
