import { MICROSOFT, type OnnxGraph } from '../../indexer/model-import/onnx-graph.ts';
import type { Random } from '../../src/base/random.ts';
import { ONNX_TYPES, type OnnxType } from '../../src/encoder/model/onnx-messages.ts';

/** A matrix of a chain of products: depth × columns. */
export interface Matrix {
  readonly name: string;
  readonly depth: number;
  readonly columns: number;
}

interface Kind {
  /** Adds input · matrix to a graph. `input`: [tokens, depth] in the type that `begin` gives. */
  readonly product: (graph: OnnxGraph, input: string, matrix: Matrix, random: Random) => string;
  /** Converts the graph's float32 input to the type that the products take, and their result back. Default: float32 throughout. */
  readonly begin?: (graph: OnnxGraph, input: string) => string;
  readonly end?: (graph: OnnxGraph, value: string) => string;
  /** Session options. */
  readonly config?: Readonly<Record<string, string>>;
}

/** Standard deviation of the uniform integers from -127 to 127, of the bytes around 128, and of the 4-bit numbers around 8. */
const DEVIATION_8 = 73.3;
const DEVIATION_4 = 4.6;
/** Scale of activations with a standard deviation of about 1 that are quantised before the run. */
const STATIC_SCALE = 1 / 32;
const BFLOAT16 = 16;

const own = { domain: MICROSOFT };

/** What onnxruntime can multiply float32 activations with on a CPU, by operator. Weights are random. */
const PRODUCT_KINDS = {
  float32: { product: (graph, input, matrix, random) => graph.node('MatMul', [input, floats(graph, matrix, random)]) },
  float16: through(ONNX_TYPES.float16.code),
  bfloat16: through(BFLOAT16),
  // What Trawl's int8 graphs use.
  'int8 DynamicQuantizeMatMul': dynamic('int8'),
  'int8 DynamicQuantizeMatMul, one scale': {
    product(graph, input, matrix, random) {
      const codes = integers(graph, matrix, 'int8', random);
      const scale = graph.floats([1 / (DEVIATION_8 * Math.sqrt(matrix.depth))], []);
      return graph.node('DynamicQuantizeMatMul', [input, codes, scale], own);
    },
  },
  'uint8 DynamicQuantizeMatMul': dynamic('uint8'),
  'int8 DynamicQuantizeMatMul, x64quantprecision': {
    ...dynamic('int8'),
    config: { 'session.x64quantprecision': '1' },
  },
  'int8 DynamicQuantizeLinear, MatMulIntegerToFloat': {
    product(graph, input, matrix, random) {
      const [codes, scale, zero] = graph.nodeWithOutputs('DynamicQuantizeLinear', [input], 3);
      const weights = integers(graph, matrix, 'int8', random);
      return graph.node('MatMulIntegerToFloat', [codes!, weights, scale!, scales(graph, matrix), zero!], own);
    },
  },
  'int8 DynamicQuantizeLinear, MatMulInteger': {
    product(graph, input, matrix, random) {
      const [codes, scale, zero] = graph.nodeWithOutputs('DynamicQuantizeLinear', [input], 3);
      const sums = graph.node('MatMulInteger', [codes!, integers(graph, matrix, 'int8', random), zero!]);
      const values = graph.node('Cast', [sums], { attributes: { to: ONNX_TYPES.float32.code } });
      return graph.node('Mul', [graph.node('Mul', [values, scale!]), scales(graph, matrix)]);
    },
  },
  'int8 QGemm, static': {
    begin: (graph, input) => graph.node('QuantizeLinear', [input, staticScale(graph), zeroByte(graph)]),
    product: (graph, input, matrix, random) =>
      graph.node(
        'QGemm',
        [
          input,
          staticScale(graph),
          zeroByte(graph),
          integers(graph, matrix, 'int8', random),
          scales(graph, matrix),
          zeros(graph, matrix),
          '',
          staticScale(graph),
          zeroByte(graph),
        ],
        own,
      ),
    end: (graph, value) => graph.node('DequantizeLinear', [value, staticScale(graph), zeroByte(graph)]),
  },
  'int8 QLinearMatMul, static, signed': {
    begin: (graph, input) => graph.node('QuantizeLinear', [input, staticScale(graph), signedZero(graph)]),
    product: (graph, input, matrix, random) =>
      graph.node('QLinearMatMul', [
        input,
        staticScale(graph),
        signedZero(graph),
        integers(graph, matrix, 'int8', random),
        scales(graph, matrix),
        zeros(graph, matrix),
        staticScale(graph),
        signedZero(graph),
      ]),
    end: (graph, value) => graph.node('DequantizeLinear', [value, staticScale(graph), signedZero(graph)]),
  },
  'MatMulNBits, 8 bits, blocks of 32': blocks(8, 32),
  'MatMulNBits, 8 bits, blocks of 128': blocks(8, 128),
  'MatMulNBits, 4 bits, blocks of 32': blocks(4, 32),
  'MatMulNBits, 4 bits, blocks of 128': blocks(4, 128),
} as const satisfies Readonly<Record<string, Kind>>;

export type ProductKind = keyof typeof PRODUCT_KINDS;
export const PRODUCT_KIND_NAMES = Object.keys(PRODUCT_KINDS) as ProductKind[];

export const kindOf = (name: ProductKind): Kind => PRODUCT_KINDS[name];

function through(type: number): Kind {
  const cast = (graph: OnnxGraph, value: string, to: number) => graph.node('Cast', [value], { attributes: { to } });
  return {
    begin: (graph, input) => cast(graph, input, type),
    product: (graph, input, matrix, random) =>
      graph.node('MatMul', [input, cast(graph, floats(graph, matrix, random), type)]),
    end: (graph, value) => cast(graph, value, ONNX_TYPES.float32.code),
  };
}

function dynamic(type: 'int8' | 'uint8'): Kind {
  return {
    product(graph, input, matrix, random) {
      const codes = integers(graph, matrix, type, random);
      const zero = type === 'uint8' ? [zeroBytes(graph, matrix)] : [];
      return graph.node('DynamicQuantizeMatMul', [input, codes, scales(graph, matrix), ...zero], own);
    },
  };
}

/** Weights in blocks with a scale each; accuracy_level 4 multiplies in int8. */
function blocks(bits: 4 | 8, size: number): Kind {
  return {
    product(graph, input, { name, depth, columns }, random) {
      const count = Math.ceil(depth / size);
      const bytes = (size * bits) / 8;
      const codes = graph.tensor({
        name,
        type: 'uint8',
        shape: [columns, count, bytes],
        bytes: () => [randomBytes(columns * count * bytes, random)],
      });
      const deviation = (bits === 8 ? DEVIATION_8 : DEVIATION_4) * Math.sqrt(depth);
      const scale = graph.tensor({
        name: `${name}.scales`,
        type: 'float32',
        shape: [columns * count],
        bytes: () => [bytesOf(new Float32Array(columns * count).fill(1 / deviation))],
      });
      const attributes = { K: depth, N: columns, bits, block_size: size, accuracy_level: 4 };
      return graph.node('MatMulNBits', [input, codes, scale], { ...own, attributes });
    },
  };
}

function floats(graph: OnnxGraph, { name, depth, columns }: Matrix, random: Random): string {
  return graph.tensor({
    name,
    type: 'float32',
    shape: [depth, columns],
    bytes() {
      // Uniform, with a standard deviation that keeps that of the activations.
      const reach = Math.sqrt(3 / depth) / 2 ** 31;
      return [bytesOf(Float32Array.from({ length: depth * columns }, () => random.word() * reach))];
    },
  });
}

function integers(
  graph: OnnxGraph,
  { name, depth, columns }: Matrix,
  type: OnnxType & ('int8' | 'uint8'),
  random: Random,
): string {
  const bytes = () => [randomBytes(depth * columns, random)];
  return graph.tensor({ name, type, shape: [depth, columns], bytes });
}

/** One scale a column. */
function scales(graph: OnnxGraph, { name, depth, columns }: Matrix): string {
  const values = new Float32Array(columns).fill(1 / (DEVIATION_8 * Math.sqrt(depth)));
  return graph.tensor({ name: `${name}.scales`, type: 'float32', shape: [columns], bytes: () => [bytesOf(values)] });
}

function zeros(graph: OnnxGraph, { name, columns }: Matrix): string {
  return graph.tensor({
    name: `${name}.zeros`,
    type: 'int8',
    shape: [columns],
    bytes: () => [new Uint8Array(columns)],
  });
}

function zeroBytes(graph: OnnxGraph, { name, columns }: Matrix): string {
  const bytes = () => [new Uint8Array(columns).fill(128)];
  return graph.tensor({ name: `${name}.zeros`, type: 'uint8', shape: [columns], bytes });
}

const staticScale = (graph: OnnxGraph): string => graph.floats([STATIC_SCALE], []);
const zeroByte = (graph: OnnxGraph): string => graph.bytes([128], []);

function signedZero(graph: OnnxGraph): string {
  const name = 'signed_zero';
  const known = graph.tensors.some((tensor) => tensor.name === name);
  return known ? name : graph.tensor({ name, type: 'int8', shape: [], bytes: () => [new Uint8Array(1)] });
}

function randomBytes(length: number, random: Random): Uint8Array {
  return bytesOf(Int32Array.from({ length: Math.ceil(length / 4) }, () => random.word())).subarray(0, length);
}

function bytesOf(values: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>): Uint8Array {
  return new Uint8Array(values.buffer);
}
