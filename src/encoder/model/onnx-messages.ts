/** Messages of ONNX files (https://onnx.ai/onnx/repo-docs/IR.html). Field numbers come from onnx.proto. */

/** Fields of a model, and of a graph. */
export const MODEL = { graph: 7 };
export const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 };

export const ONNX_TYPES = {
  float32: { code: 1, bytes: 4 },
  uint8: { code: 2, bytes: 1 },
  int8: { code: 3, bytes: 1 },
  int32: { code: 6, bytes: 4 },
  int64: { code: 7, bytes: 8 },
  bool: { code: 9, bytes: 1 },
  float16: { code: 10, bytes: 2 },
} as const;

export type OnnxType = keyof typeof ONNX_TYPES;

export type OnnxAttribute = number | string | readonly number[] | { readonly float: number };

export interface OnnxNode {
  readonly operator: string;
  /** '' for the standard operators. */
  readonly domain: string;
  /** Names of values; '' for an omitted optional input. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

/** An input or output of the graph. A variable dimension is given by its name. */
export interface OnnxValue {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly (number | string)[];
}

export function nodeMessage(node: OnnxNode): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const input of node.inputs) message.string(1, input);
  for (const output of node.outputs) message.string(2, output);
  message.string(3, node.outputs[0]!).string(4, node.operator);
  for (const [name, value] of Object.entries(node.attributes)) message.message(5, attributeMessage(name, value));
  if (node.domain !== '') message.string(7, node.domain);
  return message;
}

function attributeMessage(name: string, value: OnnxAttribute): ProtobufWriter {
  const message = new ProtobufWriter().string(1, name);
  if (typeof value === 'number') return message.integer(3, value).integer(20, 2);
  if (typeof value === 'string') return message.string(4, value).integer(20, 3);
  if ('float' in value) return message.float(2, value.float).integer(20, 1);
  for (const item of value) message.integer(8, item);
  return message.integer(20, 7);
}

export function tensorHead(tensor: {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
}): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const length of tensor.shape) message.integer(1, length);
  return message.integer(2, ONNX_TYPES[tensor.type].code).string(8, tensor.name);
}

export function valueMessage({ name, type, shape }: OnnxValue): ProtobufWriter {
  const dimensions = new ProtobufWriter();
  for (const length of shape) {
    const dimension = new ProtobufWriter();
    if (typeof length === 'string') dimension.string(2, length);
    else dimension.integer(1, length);
    dimensions.message(1, dimension);
  }
  const tensor = new ProtobufWriter().integer(1, ONNX_TYPES[type].code).message(2, dimensions);
  return new ProtobufWriter().string(1, name).message(2, new ProtobufWriter().message(1, tensor));
}

/** Writes a message of protocol buffers (https://protobuf.dev/programming-guides/encoding), fields in call order. */
export class ProtobufWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** The message; concatenate the parts. */
  get parts(): readonly Uint8Array[] {
    return this.#parts;
  }

  /** Writes an int64 field. `value` must be a safe integer. */
  integer(field: number, value: number): this {
    return this.#tag(field, 0).#varint(BigInt.asUintN(64, BigInt(value)));
  }

  float(field: number, value: number): this {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.#tag(field, 5).#append(bytes);
  }

  string(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#tag(field, 2).#varint(BigInt(value.length)).#append(value);
  }

  message(field: number, value: ProtobufWriter): this {
    this.#tag(field, 2).#varint(BigInt(value.#length));
    for (const part of value.#parts) this.#append(part);
    return this;
  }

  #tag(field: number, wireType: number): this {
    return this.#varint(BigInt(field * 8 + wireType));
  }

  #varint(value: bigint): this {
    const bytes: number[] = [];
    let rest = value;
    for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
    return this.#append(Uint8Array.from(bytes));
  }

  #append(part: Uint8Array): this {
    this.#parts.push(part);
    this.#length += part.length;
    return this;
  }
}
