import { TrawlError } from '../src/errors.ts';
import type { Precision } from '../src/manifest/model-identity.ts';
import { narrowToFloat16 } from '../src/system/float16.ts';
import type { Weight } from './checkpoint-weights.ts';
import type { Dense } from './encoder-weights.ts';
import { MICROSOFT, ONNX_TYPES, type OnnxGraph, type OnnxTensor } from './onnx-graph.ts';
import { quantizedColumns, quantizedRows } from './quantized-tensors.ts';
import { asStored, bytesOf, joined, transposed } from './weight-tensors.ts';

/** Names of graph values: the product input · matrix, and the bias still to be added ('' if the product includes it). */
export interface Product {
  readonly value: string;
  readonly bias: string;
}

/**
 * Adds matrix products, constants and outputs to a graph in a precision.
 *
 * `float32`: weights and activations. `float16`: weights and activations, for GPUs; onnxruntime accumulates and normalises
 * in float32 there. `int8`: matrices with one scale per output column; their inputs are quantised at run time, with one
 * scale per product and run (Trawl runs each text alone); the word table has one scale per row; the rest is float32.
 */
export class GraphArithmetic {
  readonly #graph: OnnxGraph;
  readonly #precision: Precision;
  /** Type of the activations. */
  readonly type: 'float32' | 'float16';

  constructor(graph: OnnxGraph, precision: Precision) {
    this.#graph = graph;
    this.#precision = precision;
    this.type = precision === 'float16' ? 'float16' : 'float32';
  }

  /** Adds a float32 constant, converted to the type of the activations. */
  constant(tensor: OnnxTensor): string {
    return this.#graph.tensor(this.type === 'float16' ? toFloat16(tensor) : tensor);
  }

  stored(name: string, weight: Weight): string {
    return this.constant(asStored(name, weight));
  }

  /** Table lookup: ids [batch, sequence] to rows [batch, sequence, columns]. */
  lookUp(name: string, table: Weight, ids: string): string {
    const graph = this.#graph;
    if (this.#precision !== 'int8') return graph.node('Gather', [this.stored(name, table), ids]);
    const { codes, scales } = quantizedRows(name, table);
    const values = graph.node('Cast', [graph.node('Gather', [graph.tensor(codes), ids])], {
      attributes: { to: ONNX_TYPES.float32.code },
    });
    return graph.node('Mul', [values, graph.node('Gather', [graph.tensor(scales), ids])]);
  }

  /** input · [A B C …]: one product with the matrices side by side. */
  product(name: string, input: string, parts: readonly Dense[]): Product {
    const graph = this.#graph;
    const weights = parts.map((part) => part.weight);
    const bias = this.bias(name, parts);
    if (this.#precision !== 'int8') {
      return { value: graph.node('MatMul', [input, this.constant(transposed(`${name}.weight`, weights))]), bias };
    }
    const { codes, scales } = quantizedColumns(name, weights);
    const inputs = [input, graph.tensor(codes), graph.tensor(scales), '', bias];
    return { value: graph.node('DynamicQuantizeMatMul', inputs, { domain: MICROSOFT }), bias: '' };
  }

  /** One product per matrix with the same input (query, key and value), and their concatenated biases. */
  products(name: string, input: string, parts: readonly Dense[]): { values: readonly string[]; bias: string } {
    if (this.#precision === 'int8') {
      // One product, so that the input is quantised once. Three were measured to be somewhat faster (docs/models.md).
      const { value, bias } = this.product(name, input, parts);
      const values = this.#graph.nodeWithOutputs('Split', [value], parts.length, { attributes: { axis: -1 } });
      return { values, bias };
    }
    // Three products are as fast as one and need no Split.
    const values = parts.map((part, i) =>
      this.#graph.node('MatMul', [input, this.constant(transposed(`${name}.${i}.weight`, [part.weight]))]),
    );
    return { values, bias: this.bias(name, parts) };
  }

  /** A dense layer of a head. It has one row per text, so it is not quantised for int8. */
  smallDense(name: string, input: string, dense: Dense, output?: string): string {
    const weight = this.constant(transposed(`${name}.weight`, [dense.weight]));
    const value = this.#graph.node('MatMul', [input, weight]);
    return this.#graph.node('Add', [value, this.bias(name, [dense])], output === undefined ? {} : { output });
  }

  bias(name: string, parts: readonly Dense[]): string {
    return this.constant(
      joined(
        `${name}.bias`,
        parts.map((part) => part.bias),
      ),
    );
  }

  /** Adds a graph output, converted to float32. */
  output(name: string, value: string, shape: readonly (number | string)[]): void {
    const to = { to: ONNX_TYPES.float32.code };
    if (this.type === 'float16') this.#graph.node('Cast', [value], { attributes: to, output: name });
    else this.#graph.node('Identity', [value], { output: name });
    this.#graph.output(name, 'float32', shape);
  }
}

function toFloat16(tensor: OnnxTensor): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of tensor.bytes()) {
      const values = new Float32Array(piece.buffer as ArrayBuffer, piece.byteOffset, piece.byteLength / 4);
      const large = values.find((value) => Math.abs(value) >= 65520);
      if (large !== undefined) {
        throw new TrawlError(
          'MODEL_INVALID',
          `${tensor.name} has the value ${large}, which is too large for float16 (at most 65504). Import the model without float16.`,
        );
      }
      yield bytesOf(narrowToFloat16(values));
    }
  }
  return { ...tensor, type: 'float16', bytes };
}
