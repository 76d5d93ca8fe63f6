import { type FileHandle, open } from 'node:fs/promises';
import type { Precision } from '../manifest/model-identity.ts';

/** What a graph's file says of itself, read without its weights. */
export interface OnnxFacts {
  readonly outputs: readonly string[];
  readonly precision: Precision;
}

/** Operators that multiply quantised numbers, or turn them back into floats. */
const QUANTIZED_OPERATORS =
  /^(MatMulInteger|ConvInteger|Q(Linear|Attention|Gemm|Embed|Ordered)|DynamicQuantize|QuantizeLinear|DequantizeLinear|MatMulNBits)/;

/** Fields of the messages in onnx.proto3, and its data types. */
const MODEL = { graph: 7 };
const GRAPH = { node: 1, initializer: 5, output: 12 };
const NODE = { opType: 4 };
const TENSOR = { dims: 1, dataType: 2 };
const VALUE = { name: 1 };
const DATA = { float32: 1, uint8: 2, int8: 3, float16: 10, bfloat16: 16 };

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;

/** Null where the file cannot be made out: onnxruntime, which loads it later, says more of that. */
export async function readOnnxFacts(path: string): Promise<OnnxFacts | null> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const reader = new FieldReader(file);
    const { size } = await file.stat();
    for await (const { field, start, end } of reader.fields(0, size)) {
      if (field === MODEL.graph) return await readGraph(reader, start, end);
    }
    return null;
  } catch {
    return null;
  } finally {
    await file?.close();
  }
}

async function readGraph(reader: FieldReader, from: number, to: number): Promise<OnnxFacts> {
  const outputs: string[] = [];
  /** Numbers of weights by data type. */
  const weights = new Map<number, number>();
  let quantized = false;
  for await (const { field, start, end } of reader.fields(from, to)) {
    if (field === GRAPH.node) quantized ||= QUANTIZED_OPERATORS.test(await readText(reader, start, end, NODE.opType));
    else if (field === GRAPH.output) outputs.push(await readText(reader, start, end, VALUE.name));
    else if (field === GRAPH.initializer) {
      const { type, elements } = await readTensor(reader, start, end);
      weights.set(type, (weights.get(type) ?? 0) + elements);
    }
  }
  const of = (...types: number[]) => types.reduce((sum, type) => sum + (weights.get(type) ?? 0), 0);
  const [whole, half, bytes] = [of(DATA.float32), of(DATA.float16, DATA.bfloat16), of(DATA.int8, DATA.uint8)];
  if (quantized || bytes > whole + half) return { outputs, precision: 'int8' };
  return { outputs, precision: half > whole ? 'float16' : 'float32' };
}

async function readText(reader: FieldReader, from: number, to: number, wanted: number): Promise<string> {
  for await (const { field, start, end } of reader.fields(from, to)) {
    if (field === wanted) return reader.text(start, end);
  }
  return '';
}

async function readTensor(reader: FieldReader, from: number, to: number): Promise<{ type: number; elements: number }> {
  let type = 0;
  let elements = 1;
  for await (const { field, start, end, value } of reader.fields(from, to)) {
    if (field === TENSOR.dataType) type = value;
    if (field !== TENSOR.dims) continue;
    // Packed, or each by itself.
    if (end === start) elements *= value;
    for (let at = start; at < end; ) {
      const dimension = await reader.varint(at);
      elements *= dimension.value;
      at = dimension.next;
    }
  }
  return { type, elements };
}

interface Field {
  readonly field: number;
  /** Of a varint; 0 else. */
  readonly value: number;
  /** The bytes of what has a length; start = end else. */
  readonly start: number;
  readonly end: number;
}

/** Fields of protobuf messages in a file; what is passed over is not read. */
class FieldReader {
  readonly #file: FileHandle;
  #window = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async *fields(from: number, to: number): AsyncGenerator<Field, void> {
    for (let at = from; at < to; ) {
      const key = await this.varint(at);
      const field = Math.floor(key.value / 8);
      switch (key.value % 8) {
        case VARINT: {
          const { value, next } = await this.varint(key.next);
          yield { field, value, start: next, end: next };
          at = next;
          break;
        }
        case LENGTH_DELIMITED: {
          const { value: length, next } = await this.varint(key.next);
          if (next + length > to) throw new RangeError('a field that reaches over its message');
          yield { field, value: 0, start: next, end: next + length };
          at = next + length;
          break;
        }
        case FIXED_32:
          at = key.next + 4;
          break;
        case FIXED_64:
          at = key.next + 8;
          break;
        default:
          throw new RangeError('an unknown wire type');
      }
    }
  }

  async varint(at: number): Promise<{ value: number; next: number }> {
    let value = 0;
    for (let i = 0; i < 10; i++) {
      const byte = await this.#byte(at + i);
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return { value, next: at + i + 1 };
    }
    throw new RangeError('a number without an end');
  }

  async text(start: number, end: number): Promise<string> {
    if (end - start > 1000) throw new RangeError('a name without an end');
    const bytes: number[] = [];
    for (let at = start; at < end; at++) bytes.push(await this.#byte(at));
    return Buffer.from(bytes).toString('utf8');
  }

  async #byte(at: number): Promise<number> {
    if (at < this.#windowStart || at >= this.#windowStart + this.#window.length) {
      const window = Buffer.alloc(4096);
      const { bytesRead } = await this.#file.read(window, 0, window.length, at);
      if (bytesRead === 0) throw new RangeError('the file ends early');
      this.#window = window.subarray(0, bytesRead);
      this.#windowStart = at;
    }
    return this.#window[at - this.#windowStart]!;
  }
}
