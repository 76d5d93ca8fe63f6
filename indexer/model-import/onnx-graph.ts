/** Builder of ONNX graphs (https://onnx.ai/onnx/repo-docs/IR.html). `onnx-writer.ts` writes them. */

import { narrowToFloat16 } from '../../src/base/system/float16.ts';
import {
  ONNX_TYPES,
  type OnnxAttribute,
  type OnnxNode,
  type OnnxType,
  type OnnxValue,
} from '../../src/encoder/model/onnx-messages.ts';

/** A constant. `bytes` is called when the tensor is written and yields its content: little-endian, row-major. */
export interface OnnxTensor {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
  readonly bytes: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

type Attributes = Readonly<Record<string, OnnxAttribute>>;

interface NodeOptions {
  readonly attributes?: Attributes;
  readonly domain?: string;
  /** Name of the (first) output. Default: generated. */
  readonly output?: string;
}

export const MICROSOFT = 'com.microsoft';

export class OnnxGraph {
  readonly name: string;
  readonly nodes: OnnxNode[] = [];
  readonly tensors: OnnxTensor[] = [];
  readonly inputs: OnnxValue[] = [];
  readonly outputs: OnnxValue[] = [];
  readonly #constants = new Map<string, string>();

  constructor(name: string) {
    this.name = name;
  }

  input(name: string, type: OnnxType, shape: readonly (number | string)[]): string {
    this.inputs.push({ name, type, shape });
    return name;
  }

  output(name: string, type: OnnxType, shape: readonly (number | string)[]): void {
    this.outputs.push({ name, type, shape });
  }

  /** Adds an operator. Returns the name of its first output. */
  node(operator: string, inputs: readonly string[], options: NodeOptions = {}): string {
    return this.nodeWithOutputs(operator, inputs, 1, options)[0]!;
  }

  nodeWithOutputs(operator: string, inputs: readonly string[], count: number, options: NodeOptions = {}): string[] {
    const { attributes = {}, domain = '', output = `${operator}_${this.nodes.length}` } = options;
    const outputs = Array.from({ length: count }, (_, i) => (i === 0 ? output : `${output}_${i}`));
    this.nodes.push({ operator, domain, inputs, outputs, attributes });
    return outputs;
  }

  microsoft(operator: string, inputs: readonly string[], attributes?: Attributes): string {
    return this.node(operator, inputs, { domain: MICROSOFT, attributes });
  }

  cast(value: string, type: OnnxType): string {
    return this.node('Cast', [value], { attributes: { to: ONNX_TYPES[type].code } });
  }

  tensor(tensor: OnnxTensor): string {
    this.tensors.push(tensor);
    return tensor.name;
  }

  /** Adds an int64 constant, once for equal values and shape. */
  integers(values: readonly number[], shape: readonly number[] = [values.length]): string {
    const data = BigInt64Array.from(values, BigInt);
    return this.#constant(`int64_${values.join('_')}`, 'int64', shape, new Uint8Array(data.buffer));
  }

  /** Adds a constant of floating-point values, once for equal values, shape and type. */
  floats(values: readonly number[], shape: readonly number[], type: 'float32' | 'float16' = 'float32'): string {
    const exact = Float32Array.from(values);
    const data = type === 'float16' ? narrowToFloat16(exact) : exact;
    return this.#constant(`${type}_${values.join('_')}`, type, shape, new Uint8Array(data.buffer));
  }

  /** Adds a uint8 constant, once for equal values and shape. */
  bytes(values: readonly number[], shape: readonly number[]): string {
    return this.#constant(`uint8_${values.join('_')}`, 'uint8', shape, Uint8Array.from(values));
  }

  #constant(name: string, type: OnnxType, shape: readonly number[], bytes: Uint8Array): string {
    const key = `${name}_shape_${shape.join('x')}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    this.#constants.set(key, key);
    return this.tensor({ name: key, type, shape, bytes: () => [bytes] });
  }
}

export function bytesOfTensor({ shape, type }: OnnxTensor): number {
  return shape.reduce((product, length) => product * length, ONNX_TYPES[type].bytes);
}
