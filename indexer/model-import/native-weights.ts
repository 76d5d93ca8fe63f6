import { open } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import type { EnginePrecision } from '../../src/engine/native/encoder-functions.ts';
import type { Weight } from './checkpoint-weights.ts';
import type { WriteOnnxOptions } from './onnx-writer.ts';
import type { Dense, LayerNorm } from './weight-finder.ts';
import { quantizeRows } from './weight-tensors.ts';

/** A part of a file of weights for the native encoder. */
export interface NativePart {
  readonly bytes: number;
  readonly content: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** Parts begin at multiples of this, as native/src/encoder/bert_file.hpp says. */
const ALIGNMENT = 64;
/** Columns of a panel of a packed matrix (native/src/encoder/products.hpp). */
const PANEL = 64;
/** Weights below 2^-50 are stored as zero, so that sums have no subnormal numbers. */
const SMALLEST = 2 ** -50;
/** In int8, the engine adds this to the codes of the inputs, so that they have no sign. */
const CODE_OFFSET = 128;

export function nativeBytes(parts: readonly NativePart[]): number {
  return parts.reduce((sum, { bytes }) => sum + Math.ceil(bytes / ALIGNMENT) * ALIGNMENT, 0);
}

/** Writes the parts one after the other. `path` must not exist. Keeps one matrix in memory. */
export async function writeNative(
  path: string,
  parts: readonly NativePart[],
  { signal, onBytes }: WriteOnnxOptions = {},
): Promise<void> {
  const file = await open(path, 'wx');
  try {
    for (const { bytes, content } of parts) {
      let written = 0;
      const append = async (piece: Uint8Array): Promise<void> => {
        throwIfCancelled(signal);
        await file.writeFile(piece);
        written += piece.length;
        onBytes?.(piece.length);
      };
      for await (const piece of content()) await append(piece);
      if (written !== bytes) throw new RangeError(`a part of ${path} has ${written} bytes, expected ${bytes}`);
      await append(new Uint8Array(Math.ceil(bytes / ALIGNMENT) * ALIGNMENT - bytes));
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

export function bytesPart(content: Uint8Array): NativePart {
  return { bytes: content.length, content: () => [content] };
}

/** Weights one after the other, as float32. */
export function floatsPart(weights: readonly Weight[]): NativePart {
  return {
    bytes: weights.reduce((sum, { shape }) => sum + 4 * shape.reduce((product, length) => product * length, 1), 0),
    async *content() {
      for (const weight of weights) {
        for await (const values of weight.chunks()) yield new Uint8Array(values.buffer);
      }
    },
  };
}

/** A norm: its factors and summands, which are zero if it has none. */
export function normPart({ weight, bias }: LayerNorm): NativePart {
  if (bias !== undefined) return floatsPart([weight, bias]);
  const size = weight.shape[0]!;
  return {
    bytes: 8 * size,
    async *content() {
      yield* floatsPart([weight]).content();
      yield new Uint8Array(4 * size);
    },
  };
}

/** Dense layers side by side: their matrix, packed, and their biases; in int8 also what belongs to each column. */
export function denseParts(layers: readonly Dense[], precision: EnginePrecision): readonly NativePart[] {
  const matrices = layers.map(({ weight }) => weight);
  const depth = matrices[0]!.shape[1]!;
  const columns = matrices.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const biases = floatsPart(layers.map(({ bias }) => bias!));
  if (precision === 'int8') return [...quantizedParts(matrices, depth, columns), biases];
  return [
    {
      bytes: 2 * depth * columns,
      async *content() {
        yield new Uint8Array((await packBfloat16(matrices, depth, columns)).buffer);
      },
    },
    biases,
  ];
}

/** The codes of matrices, and what belongs to each column. Quantises once; the parts are written one after the other. */
function quantizedParts(matrices: readonly Weight[], depth: number, columns: number): readonly NativePart[] {
  let made: Promise<PackedCodes> | undefined;
  const part = (bytes: number, name: keyof PackedCodes): NativePart => ({
    bytes,
    async *content() {
      made ??= packCodes(matrices, depth, columns);
      const values = (await made)[name];
      // The last part: the matrix is not needed any more.
      if (name === 'scales') made = undefined;
      yield new Uint8Array(values.buffer);
    },
  });
  return [part(depth * columns, 'codes'), part(4 * columns, 'firstSums'), part(4 * columns, 'scales')];
}

/** Matrices [columns, depth] as panels of 64 columns: [depth/2][columns of the panel][2]. */
async function packBfloat16(
  matrices: readonly Weight[],
  depth: number,
  columns: number,
): Promise<Uint16Array<ArrayBuffer>> {
  const result = new Uint16Array(depth * columns);
  let column = 0;
  for (const matrix of matrices) {
    for await (const values of matrix.chunks()) {
      const bits = new Uint32Array(values.buffer);
      for (let from = 0; from < values.length; from += depth, column++) {
        const { start, width } = placeInPanel(column, columns, depth, 2);
        for (let k = 0; k < depth; k++) {
          result[start + (k >> 1) * 2 * width + (k & 1)] =
            Math.abs(values[from + k]!) < SMALLEST ? 0 : toBfloat16(bits[from + k]!);
        }
      }
    }
  }
  return result;
}

/** The nearest bfloat16, the even one of two, from the bits of a finite float32. */
function toBfloat16(bits: number): number {
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** Matrices side by side in int8, as native/src/encoder/byte_products.hpp describes them. */
interface PackedCodes {
  readonly codes: Int8Array<ArrayBuffer>;
  /** First summand of each column's sum. */
  readonly firstSums: Int32Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
}

/** Quantises matrices [columns, depth] with one scale per column, in panels of 64 columns: [depth/4][columns of the panel][4]. */
async function packCodes(matrices: readonly Weight[], depth: number, columns: number): Promise<PackedCodes> {
  const codes = new Int8Array(depth * columns);
  const firstSums = new Int32Array(columns);
  const scales = new Float32Array(columns);
  let column = 0;
  for (const matrix of matrices) {
    for await (const values of matrix.chunks()) {
      const quantized = quantizeRows(values, depth);
      scales.set(quantized.scales, column);
      for (let from = 0; from < values.length; from += depth, column++) {
        const { start, width } = placeInPanel(column, columns, depth, 4);
        let sum = 0;
        for (let k = 0; k < depth; k++) {
          const code = quantized.codes[from + k]!;
          sum += code;
          codes[start + (k >> 2) * 4 * width + (k & 3)] = code;
        }
        firstSums[column] = -CODE_OFFSET * sum;
      }
    }
  }
  return { codes, firstSums, scales };
}

/** Where a column's first `step` values lie in its panel, and the columns of the panel. */
function placeInPanel(column: number, columns: number, depth: number, step: number) {
  const first = column - (column % PANEL);
  return { start: first * depth + step * (column - first), width: Math.min(PANEL, columns - first) };
}
