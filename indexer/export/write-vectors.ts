import { TrawlError } from '../../src/base/errors.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { encodeFlatHeader, encodeFp16Header, faissMetric } from '../../src/engine/vectors/faiss-format.ts';
import type { IndexSource } from '../../src/engine/vectors/vector-index.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { type RowChoice, vectorBlocks } from './index-rows.ts';
import type { ExportShape } from './planned-outputs.ts';
import type { WriteContent } from './write-lines.ts';

/** The header of a FAISS file: a flat index (`IxFI` or `IxF2`), or for float16 a scalar quantiser index (`IxSQ`). */
export function faissHeader({ dimension, metric }: IndexSource, { rows, dtype }: ExportShape): Uint8Array {
  const header = { rows, dimension, metric: faissMetric(metric) };
  return dtype === 'float16' ? encodeFp16Header(header) : encodeFlatHeader(header);
}

/** The header of a .npy file, version 1.0 (numpy.lib.format). Its length is a multiple of 64, as with numpy. */
export function npyHeader({ dimension }: IndexSource, { rows, dtype }: ExportShape): Uint8Array {
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
 * Writes a header and the vectors, row-major.
 *
 * @throws TrawlError NOT_SUPPORTED for a value that float16 cannot represent exactly, with row and column in `details`;
 * ENGINE_MISSING for float16 without the native engine.
 */
export function writeVectors(
  directory: IndexDirectory,
  choice: RowChoice,
  shape: ExportShape,
  header: (source: IndexSource, shape: ExportShape) => Uint8Array,
): WriteContent {
  return async ({ write, onRows }) => {
    await write(header(directory.source!, shape));
    const kernel = shape.dtype === 'float16' ? kernelForFloat16() : undefined;
    const { dimension } = directory.manifest;
    let row = 0;
    for await (const values of vectorBlocks(directory, choice)) {
      const numbers = kernel === undefined ? values : toHalves(kernel, values, row, dimension);
      onRows(values.length / dimension);
      await write(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
      row += values.length / dimension;
    }
  };
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
