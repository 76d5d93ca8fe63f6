import type { Weight } from './checkpoint-weights.ts';
import type { OnnxTensor } from './onnx-graph.ts';
import { quantizeColumns, quantizeRows } from './quantize.ts';
import { bytesOf, transposedValues } from './weight-tensors.ts';

/** Codes and scales as graph constants. Write the codes first: quantising them also computes the scales. */
export interface QuantizedTensors {
  readonly codes: OnnxTensor;
  readonly scales: OnnxTensor;
}

/** Matrices [output, input], transposed and side by side: [input, outputs], with one scale per output. */
export function quantizedColumns(name: string, weights: readonly Weight[]): QuantizedTensors {
  const inputs = weights[0]!.shape[1]!;
  const outputs = weights.reduce((sum, weight) => sum + weight.shape[0]!, 0);
  let scales: Uint8Array | null = null;
  const quantize = async () => {
    const matrix = quantizeColumns(await transposedValues(weights), outputs);
    scales = bytesOf(matrix.scales);
    return matrix;
  };
  return {
    codes: {
      name: `${name}.codes`,
      type: 'int8',
      shape: [inputs, outputs],
      bytes: async function* () {
        yield new Uint8Array((await quantize()).codes.buffer);
      },
    },
    scales: {
      name: `${name}.scales`,
      type: 'float32',
      shape: [outputs],
      bytes: async function* () {
        yield scales ?? bytesOf((await quantize()).scales);
      },
    },
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
    scales: {
      name: `${name}.scales`,
      type: 'float32',
      shape: [rows, 1],
      bytes: async function* () {
        for await (const values of table.chunks()) yield bytesOf(quantizeRows(values, columns).scales);
      },
    },
  };
}
