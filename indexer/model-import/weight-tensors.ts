import type { Weight } from './checkpoint-weights.ts';
import type { OnnxTensor } from './onnx-graph.ts';

/** Checkpoint weights as float32 constants of a graph. */

/** A weight with its stored shape. */
export function asStored(name: string, weight: Weight): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const values of weight.chunks()) yield bytesOf(values);
  }
  return { name, type: 'float32', shape: weight.shape, bytes };
}

/** Concatenated vectors. */
export function joined(name: string, weights: readonly Weight[]): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (const weight of weights) yield bytesOf(await weight.values());
  }
  return { name, type: 'float32', shape: [weights.reduce((sum, weight) => sum + weight.shape[0]!, 0)], bytes };
}

/** Matrices [output, input], as PyTorch stores them, transposed for ONNX and side by side: [input, outputs]. */
export function transposed(name: string, weights: readonly Weight[]): OnnxTensor {
  const inputs = weights[0]!.shape[1]!;
  const outputs = weights.reduce((sum, weight) => sum + weight.shape[0]!, 0);
  return {
    name,
    type: 'float32',
    shape: [inputs, outputs],
    bytes: async function* () {
      yield bytesOf(await transposedValues(weights));
    },
  };
}

/** The values of `transposed`: float32, row-major, `inputs` × the sum of the weights' outputs. */
export async function transposedValues(weights: readonly Weight[]): Promise<Float32Array<ArrayBuffer>> {
  const inputs = weights[0]!.shape[1]!;
  const outputs = weights.reduce((sum, weight) => sum + weight.shape[0]!, 0);
  const result = new Float32Array(inputs * outputs);
  let column = 0;
  for (const weight of weights) {
    const values = await weight.values();
    const rows = weight.shape[0]!;
    for (let row = 0, at = 0; row < rows; row++, column++) {
      for (let i = 0, to = column; i < inputs; i++, at++, to += outputs) result[to] = values[at]!;
    }
  }
  return result;
}

/** Adds a single row to every row of a table. */
export function addedRows(name: string, table: Weight, row: Weight): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    const added = await row.values();
    for await (const values of table.chunks()) {
      for (let i = 0; i < values.length; i++) values[i] = values[i]! + added[i % added.length]!;
      yield bytesOf(values);
    }
  }
  return { name, type: 'float32', shape: table.shape, bytes };
}

/** The memory of the values, not a copy. ONNX stores tensors little-endian, as the processors that Trawl supports have them. */
export function bytesOf(values: Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
