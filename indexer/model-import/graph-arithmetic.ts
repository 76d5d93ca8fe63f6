import { bug } from '../../src/base/errors.ts';
import { narrowToFloat16 } from '../../src/base/system/float16.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { invalidModel } from '../../src/encoder/model/json-file.ts';
import { ONNX_TYPES } from '../../src/encoder/model/onnx-messages.ts';
import type { Weight } from './checkpoint-weights.ts';
import type { OnnxGraph, OnnxTensor } from './onnx-graph.ts';
import type { Dense } from './weight-finder.ts';
import { asStored, bytesOf, joined, quantizedColumns, quantizedRows, transposed } from './weight-tensors.ts';

/** Names of graph values: the product input · matrix, and the bias still to be added ('' if the product includes it). */
export interface Product {
  readonly value: string;
  readonly bias: string;
}

/**
 * How an int8 graph quantises the inputs of its matrix products: with one scale per product and run, which is faster, or one per token,
 * which keeps ordinary tokens exact beside a few tokens with values a hundred times as large, as in decoders.
 */
export type InputScales = 'per-run' | 'per-token';

/**
 * Adds matrix products, constants and outputs to a graph in a precision.
 *
 * `float32`: weights and activations. `float16`: weights and activations, for GPUs; onnxruntime accumulates and normalises
 * in float32 there. `int8`: matrices with one scale per output column; their inputs are quantised at run time (`InputScales`;
 * with scales per run, Trawl runs each text alone); the word table has one scale per row; the rest is float32.
 */
export class GraphArithmetic {
  readonly graph: OnnxGraph;
  readonly #precision: Precision;
  readonly #inputScales: InputScales;
  readonly type: 'float32' | 'float16';

  constructor(graph: OnnxGraph, precision: Precision, inputScales: InputScales) {
    this.graph = graph;
    this.#precision = precision;
    this.#inputScales = inputScales;
    this.type = precision === 'float16' ? 'float16' : 'float32';
  }

  /** Adds a float32 constant, converted to the type of the activations. */
  constant(tensor: OnnxTensor): string {
    return this.graph.tensor(this.type === 'float16' ? toFloat16(tensor) : tensor);
  }

  stored(name: string, weight: Weight): string {
    return this.constant(asStored(name, weight));
  }

  /** Table lookup: ids [batch, sequence] to rows [batch, sequence, columns]. */
  lookUp(name: string, table: Weight, ids: string): string {
    const { graph } = this;
    if (this.#precision !== 'int8') return graph.node('Gather', [this.stored(name, table), ids]);
    const { codes, scales } = quantizedRows(name, table);
    const values = graph.cast(graph.node('Gather', [graph.tensor(codes), ids]), 'float32');
    return graph.node('Mul', [values, graph.node('Gather', [graph.tensor(scales), ids])]);
  }

  /** A constant of one value in the type of the activations. */
  scalar(value: number): string {
    return this.graph.floats([value], [], this.type);
  }

  /** input · [A B C …]: one product with the matrices side by side. */
  product(name: string, input: string, parts: readonly Dense[]): Product {
    const { graph } = this;
    const weights = parts.map((part) => part.weight);
    const bias = this.#bias(name, parts);
    if (this.#precision !== 'int8') return { value: this.#floatProduct(`${name}.weight`, input, weights), bias };
    const quantized = quantizedColumns(name, weights);
    const [codes, scales] = [graph.tensor(quantized.codes), graph.tensor(quantized.scales)];
    if (this.#inputScales === 'per-token') return { value: this.#productPerToken(input, codes, scales), bias };
    return { value: graph.microsoft('DynamicQuantizeMatMul', [input, codes, scales, '', bias]), bias: '' };
  }

  dense(name: string, input: string, part: Dense): string {
    return this.withBias(this.product(name, input, [part]));
  }

  withBias({ value, bias }: Product): string {
    return bias === '' ? value : this.graph.node('Add', [value, bias]);
  }

  /** One product per matrix with the same input (query, key and value), and their concatenated biases. */
  products(name: string, input: string, parts: readonly Dense[]): { values: readonly string[]; bias: string } {
    if (this.#precision === 'int8') {
      // One product, so that the input is quantised once. Three were measured to be somewhat faster (docs/models.md).
      const { value, bias } = this.product(name, input, parts);
      return { values: this.#split(value, parts), bias };
    }
    // Three products are as fast as one and need no Split.
    const values = parts.map(({ weight }, i) => this.#floatProduct(`${name}.${i}.weight`, input, [weight]));
    return { values, bias: this.#bias(name, parts) };
  }

  /** The products with their biases, one value per matrix. */
  denses(name: string, input: string, parts: readonly Dense[]): readonly string[] {
    if (parts.every((part) => part.bias === undefined)) return this.products(name, input, parts).values;
    if (this.#precision === 'int8') return this.#split(this.withBias(this.product(name, input, parts)), parts);
    return parts.map((part, i) => this.dense(`${name}.${i}`, input, part));
  }

  /** A dense layer of a head. It has one row per text, so it is not quantised for int8. */
  smallDense(name: string, input: string, dense: Dense): string {
    const value = this.#floatProduct(`${name}.weight`, input, [dense.weight]);
    return this.withBias({ value, bias: this.#bias(name, [dense]) });
  }

  /** Adds a graph output, converted to float32. */
  output(name: string, value: string, shape: readonly (number | string)[]): void {
    const attributes = { to: ONNX_TYPES.float32.code };
    if (this.type === 'float16') this.graph.node('Cast', [value], { attributes, output: name });
    else this.graph.node('Identity', [value], { output: name });
    this.graph.output(name, 'float32', shape);
  }

  #floatProduct(name: string, input: string, weights: readonly Weight[]): string {
    return this.graph.node('MatMul', [input, this.constant(transposed(name, weights))]);
  }

  /** Quantises every row of the input to codes 1…255 around 128, with the scale largest magnitude / 127. */
  #productPerToken(input: string, codes: string, scales: string): string {
    const { graph } = this;
    const attributes = { axes: [-1], keepdims: 1 };
    const largest = graph.node('ReduceMax', [graph.node('Abs', [input])], { attributes });
    const rowScales = graph.node('Mul', [
      graph.node('Max', [largest, graph.floats([1e-20], [])]),
      graph.floats([1 / 127], []),
    ]);
    // Half a step more, because the conversion cuts the fraction off.
    const shifted = graph.node('Add', [graph.node('Div', [input, rowScales]), graph.floats([128.5], [])]);
    const rowCodes = graph.cast(shifted, 'uint8');
    const inputs = [rowCodes, codes, graph.floats([1], []), scales, graph.bytes([128], [])];
    return graph.node('Mul', [graph.microsoft('MatMulIntegerToFloat', inputs), rowScales]);
  }

  #split(value: string, parts: readonly Dense[]): readonly string[] {
    const sizes = parts.map((part) => part.weight.shape[0]!);
    const isEven = sizes.every((size) => size === sizes[0]);
    const inputs = isEven ? [value] : [value, this.graph.integers(sizes)];
    return this.graph.nodeWithOutputs('Split', inputs, parts.length, { attributes: { axis: -1 } });
  }

  /** The concatenated biases; '' if the layers have none. */
  #bias(name: string, parts: readonly Dense[]): string {
    const biases = parts.flatMap(({ bias }) => bias ?? []);
    if (biases.length === 0) return '';
    if (biases.length !== parts.length) throw bug(`${name}: some of its layers have a bias and some have none`);
    return this.constant(joined(`${name}.bias`, biases));
  }
}

function toFloat16(tensor: OnnxTensor): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of tensor.bytes()) {
      const values = new Float32Array(piece.buffer as ArrayBuffer, piece.byteOffset, piece.byteLength / 4);
      const large = values.find((value) => Math.abs(value) >= 65520);
      if (large !== undefined) {
        throw invalidModel(
          `${tensor.name} has the value ${large}, which is too large for float16 (at most 65504). Import the model without float16.`,
        );
      }
      yield bytesOf(narrowToFloat16(values));
    }
  }
  return { ...tensor, type: 'float16', bytes };
}
