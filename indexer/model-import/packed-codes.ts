import type { Weight } from './checkpoint-weights.ts';
import { quantizeRows } from './quantize.ts';

/** Matrices side by side in int8, as native/src/encoder/byte_products.hpp describes them. */
export interface PackedCodes {
  readonly codes: Int8Array<ArrayBuffer>;
  /** What the sum of each column begins with. */
  readonly firstSums: Int32Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
}

/** Columns of a panel of a packed matrix. */
const PANEL = 64;
/** The engine adds this to the codes of the inputs, so that they have no sign. */
const CODE_OFFSET = 128;

/**
 * Quantises matrices [columns, depth] with one scale per column, and packs the codes as panels of 64 columns:
 * [depth/4][columns of the panel][4].
 */
export async function packedCodes(matrices: readonly Weight[], depth: number, columns: number): Promise<PackedCodes> {
  const codes = new Int8Array(depth * columns);
  const firstSums = new Int32Array(columns);
  const scales = new Float32Array(columns);
  let column = 0;
  for (const matrix of matrices) {
    for await (const values of matrix.chunks()) {
      const quantized = quantizeRows(values, depth);
      scales.set(quantized.scales, column);
      for (let from = 0; from < values.length; from += depth, column++) {
        const first = column - (column % PANEL);
        const width = Math.min(PANEL, columns - first);
        const start = first * depth + 4 * (column - first);
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
