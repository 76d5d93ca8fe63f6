import { TrawlError } from '../../src/base/errors.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { encodeFlatHeader, faissMetric } from '../../src/engine/vectors/faiss-format.ts';
import { encodeFp16Header } from '../../src/engine/vectors/faiss-fp16-format.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { type RowChoice, vectorBlocks, vectorsOf } from './index-rows.ts';

/** Writes bytes in order. The caller may overwrite them after the promise resolves. */
export type Sink = (bytes: Uint8Array) => Promise<void>;

export interface VectorShape {
  /** Number of exported rows. */
  readonly rows: number;
  readonly dtype: VectorDtype;
}

/** The header of a FAISS file: a flat index (`IxFI` or `IxF2`), or for float16 a scalar quantiser index (`IxSQ`). */
export function faissHeader(directory: IndexDirectory, { rows, dtype }: VectorShape): Uint8Array {
  const source = vectorsOf(directory);
  const header = { rows, dimension: source.dimension, metric: faissMetric(source.metric) };
  return dtype === 'float16' ? encodeFp16Header(header) : encodeFlatHeader(header);
}

/** The header of a .npy file, version 1.0 (numpy.lib.format). Its length is a multiple of 64, as with numpy. */
export function npyHeader(directory: IndexDirectory, { rows, dtype }: VectorShape): Uint8Array {
  const { dimension } = vectorsOf(directory);
  const descr = dtype === 'float16' ? '<f2' : '<f4';
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${rows}, ${dimension}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64;
  const header = Buffer.alloc(length, ' ');
  header.write('\x93NUMPY\x01\x00', 'latin1');
  header.writeUInt16LE(length - 10, 8);
  header.write(text, 10, 'latin1');
  header.write('\n', length - 1);
  return header;
}

/**
 * Writes the vectors, row-major, in `dtype`.
 *
 * @throws TrawlError NOT_SUPPORTED for a value that float16 cannot represent exactly, with row and column in `details`;
 * ENGINE_MISSING for float16 without the native engine.
 */
export async function writeVectors(
  directory: IndexDirectory,
  dtype: VectorDtype,
  choice: RowChoice,
  sink: Sink,
): Promise<void> {
  const kernel = dtype === 'float16' ? kernelForFloat16() : undefined;
  const { dimension } = vectorsOf(directory);
  let row = 0;
  for await (const values of vectorBlocks(directory, choice)) {
    const numbers = kernel === undefined ? values : toHalves(kernel, values, row, dimension);
    await sink(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
    row += values.length / dimension;
  }
}

function toHalves(kernel: Kernel, values: Float32Array, firstRow: number, dimension: number): Uint16Array {
  const bad = kernel.firstNotHalf(values);
  if (bad < values.length) {
    const [row, column] = [firstRow + Math.floor(bad / dimension), bad % dimension];
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The vector of row ${row} has ${values[bad]} in column ${column}, which float16 cannot represent exactly. --float16 is ` +
        'lossless and only works for vectors from float16 encoders. Omit it.',
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
    `--float16 needs the native engine, which is not available (${loaded.reason}). Compile it with npm run build, or omit --float16.`,
  );
}
