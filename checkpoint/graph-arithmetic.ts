import { TrawlError } from '../src/errors.ts';
import type { Precision } from '../src/manifest/model-identity.ts';
import type { Weight } from './checkpoint-weights.ts';
import type { Dense } from './encoder-weights.ts';
import { narrowToFloat16 } from './float-formats.ts';
import { MICROSOFT, ONNX_TYPES, type OnnxGraph, type OnnxTensor } from './onnx-graph.ts';
import { quantizedColumns, quantizedRows } from './quantized-tensors.ts';
import { asStored, bytesOf, joined, transposed } from './weight-tensors.ts';

/** input · matrix, and the bias that is still to be added; '' where it is in the product already. */
export interface Product {
  readonly value: string;
  readonly bias: string;
}

/**
 * In which numbers a graph computes. `float32`: all of it. `float16`: weights and activations, for GPUs; onnxruntime sums
 * and normalises in float32 there. `int8`: matrices with a scale per output column times activations with one scale per
 * text, quantised as they come; the table of words with a scale per row; all else in float32.
 */
export class GraphArithmetic {
  readonly #graph: OnnxGraph;
  readonly #precision: Precision;
  /** The type of activations. */
  readonly type: 'float32' | 'float16';

  constructor(graph: OnnxGraph, precision: Precision) {
    this.#graph = graph;
    this.#precision = precision;
    this.type = precision === 'float16' ? 'float16' : 'float32';
  }

  /** A constant of float32 in the type of activations. */
  constant(tensor: OnnxTensor): string {
    return this.#graph.tensor(this.type === 'float16' ? halved(tensor) : tensor);
  }

  stored(name: string, weight: Weight): string {
    return this.constant(asStored(name, weight));
  }

  /** Rows of a table, [batch, sequence, columns], for ids of [batch, sequence]. */
  lookUp(name: string, table: Weight, ids: string): string {
    const graph = this.#graph;
    if (this.#precision !== 'int8') return graph.node('Gather', [this.stored(name, table), ids]);
    const { codes, scales } = quantizedRows(name, table);
    const values = graph.node('Cast', [graph.node('Gather', [graph.tensor(codes), ids])], {
      attributes: { to: ONNX_TYPES.float32.code },
    });
    return graph.node('Mul', [values, graph.node('Gather', [graph.tensor(scales), ids])]);
  }

  /** Matrices side by side, one product. */
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

  /** Query, key and value of one input, and their biases one after another. */
  products(name: string, input: string, parts: readonly Dense[]): { values: readonly string[]; bias: string } {
    if (this.#precision === 'int8') {
      // One product, so that the input is quantised once.
      const { value, bias } = this.product(name, input, parts);
      const values = this.#graph.nodeWithOutputs('Split', [value], parts.length, { attributes: { axis: -1 } });
      return { values, bias };
    }
    // Three products are as fast as one, and leave nothing to be split.
    const values = parts.map((part, i) =>
      this.#graph.node('MatMul', [input, this.constant(transposed(`${name}.${i}.weight`, [part.weight]))]),
    );
    return { values, bias: this.bias(name, parts) };
  }

  /** A layer of a head, which sees one row a text: in activations' type whatever the precision. */
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

  /** A graph's output is float32 whatever it was computed in. */
  output(name: string, value: string, shape: readonly (number | string)[]): void {
    const to = { to: ONNX_TYPES.float32.code };
    if (this.type === 'float16') this.#graph.node('Cast', [value], { attributes: to, output: name });
    else this.#graph.node('Identity', [value], { output: name });
    this.#graph.output(name, 'float32', shape);
  }
}

function halved(tensor: OnnxTensor): OnnxTensor {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of tensor.bytes()) {
      const values = new Float32Array(piece.buffer as ArrayBuffer, piece.byteOffset, piece.byteLength / 4);
      const large = values.find((value) => Math.abs(value) >= 65520);
      if (large !== undefined) {
        throw new TrawlError(
          'MODEL_INVALID',
          `${tensor.name} has the value ${large}, which float16 cannot hold (at most 65504). Leave out the precision float16.`,
        );
      }
      yield bytesOf(narrowToFloat16(values));
    }
  }
  return { ...tensor, type: 'float16', bytes };
}
