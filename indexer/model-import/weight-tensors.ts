import type { Weight } from './checkpoint-weights.ts';
import type { OnnxTensor } from './onnx-graph.ts';

/** Checkpoint weights as constants of a graph. Matrices are [outputs, inputs], as PyTorch stores them. */

export function asStored(name: string, weight: Weight): OnnxTensor {
  return float32Tensor(name, weight.shape, async function* () {
    for await (const values of weight.chunks()) yield bytesOf(values);
  });
}

/** Concatenated vectors. */
export function joined(name: string, weights: readonly Weight[]): OnnxTensor {
  return float32Tensor(name, [countOutputs(weights)], async function* () {
    for (const weight of weights) yield bytesOf(await weight.values());
  });
}

/** Matrices transposed for ONNX and side by side: [inputs, all outputs]. */
export function transposed(name: string, weights: readonly Weight[]): OnnxTensor {
  const shape = transposedShape(weights);
  return float32Tensor(name, shape, async function* () {
    const values = new Float32Array(shape[0] * shape[1]);
    let column = 0;
    for (const weight of weights) column = setColumns(values, shape, column, await weight.values());
    yield bytesOf(values);
  });
}

export function addedRows(name: string, table: Weight, row: Weight): OnnxTensor {
  return float32Tensor(name, table.shape, async function* () {
    const added = await row.values();
    for await (const values of table.chunks()) {
      for (let i = 0; i < values.length; i++) values[i] = values[i]! + added[i % added.length]!;
      yield bytesOf(values);
    }
  });
}

/** Codes and scales as graph constants. Write the codes first: quantising them also computes the scales. */
interface QuantizedTensors {
  readonly codes: OnnxTensor;
  readonly scales: OnnxTensor;
}

/** Matrices as by `transposed`, with one scale per output. */
export function quantizedColumns(name: string, weights: readonly Weight[]): QuantizedTensors {
  const shape = transposedShape(weights);
  let scales: Float32Array<ArrayBuffer> | undefined;
  const quantize = async () => {
    const codes = new Int8Array(shape[0] * shape[1]);
    const own = new Float32Array(shape[1]);
    let column = 0;
    for (const weight of weights) {
      const rows = quantizeRows(await weight.values(), shape[0]);
      own.set(rows.scales, column);
      column = setColumns(codes, shape, column, rows.codes);
    }
    scales = own;
    return { codes, scales };
  };
  return {
    codes: {
      name: `${name}.codes`,
      type: 'int8',
      shape,
      bytes: async function* () {
        yield new Uint8Array((await quantize()).codes.buffer);
      },
    },
    scales: float32Tensor(`${name}.scales`, [shape[1]], async function* () {
      yield bytesOf(scales ?? (await quantize()).scales);
    }),
  };
}

/** A table with one scale per row. */
export function quantizedRows(name: string, table: Weight): QuantizedTensors {
  const [rows, columns] = table.shape as [number, number];
  return {
    codes: {
      name: `${name}.codes`,
      type: 'int8',
      shape: table.shape,
      bytes: async function* () {
        for await (const values of table.chunks()) yield new Uint8Array(quantizeRows(values, columns).codes.buffer);
      },
    },
    scales: float32Tensor(`${name}.scales`, [rows, 1], async function* () {
      for await (const values of table.chunks()) yield bytesOf(quantizeRows(values, columns).scales);
    }),
  };
}

/** A row-major int8 matrix with a scale per row: value ≈ code × scale. */
interface QuantizedRows {
  readonly codes: Int8Array<ArrayBuffer>;
  /** Positive; 1 for a row of zeros. */
  readonly scales: Float32Array<ArrayBuffer>;
}

/**
 * Quantises every row of a row-major matrix symmetrically to −127…127: scale = largest magnitude / 127, codes rounded to the nearest.
 */
export function quantizeRows(values: Float32Array, columns: number): QuantizedRows {
  const scales = new Float32Array(values.length / columns);
  const codes = new Int8Array(values.length);
  for (let row = 0; row < scales.length; row++) {
    const from = row * columns;
    let largest = 0;
    for (let at = from; at < from + columns; at++) largest = Math.max(largest, Math.abs(values[at]!));
    // Dividing by a subnormal scale can overflow. Rounded to float32, because the codes must be computed with the stored scale.
    const scale = largest < 1e-30 ? 1 : Math.fround(largest / 127);
    scales[row] = scale;
    for (let at = from; at < from + columns; at++) codes[at] = Math.round(values[at]! / scale);
  }
  return { codes, scales };
}

/** The memory of the values, not a copy. ONNX stores tensors little-endian, as the processors that Trawl supports have them. */
export function bytesOf(values: Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function float32Tensor(name: string, shape: readonly number[], bytes: OnnxTensor['bytes']): OnnxTensor {
  return { name, type: 'float32', shape, bytes };
}

function countOutputs(weights: readonly Weight[]): number {
  return weights.reduce((sum, { shape }) => sum + shape[0]!, 0);
}

/** [inputs, all outputs] */
function transposedShape(weights: readonly Weight[]): readonly [number, number] {
  return [weights[0]!.shape[1]!, countOutputs(weights)];
}

/** Writes the rows of a matrix as the columns of `target` from `column` on. Returns the column after them. */
function setColumns<T extends Float32Array | Int8Array>(
  target: T,
  [height, width]: readonly [number, number],
  column: number,
  rows: T,
): number {
  let next = column;
  for (let at = 0; at < rows.length; next++) {
    for (let i = 0, to = next; i < height; i++, at++, to += width) target[to] = rows[at]!;
  }
  return next;
}
