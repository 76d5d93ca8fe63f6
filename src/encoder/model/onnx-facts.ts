import { type FileHandle, open } from 'node:fs/promises';
import type { Precision } from '../identity/model-identity.ts';
import { invalidModel } from './json-file.ts';
import { GRAPH, MODEL } from './onnx-messages.ts';

/** Facts about an ONNX graph, read from its file without loading the weights. */
export interface OnnxFacts {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly precision: Precision;
  /** Files with the graph's weights, as the graph names them. */
  readonly externalData: readonly string[];
}

const QUANTIZED_OPERATORS =
  /^(MatMulInteger|ConvInteger|Q(Linear|Attention|Gemm|Embed|Ordered)|DynamicQuantize|QuantizeLinear|DequantizeLinear|MatMulNBits)/;

/** Field numbers and data types of onnx.proto. */
const NODE = { operator: 4 };
const TENSOR = { dims: 1, dataType: 2, externalData: 13 };
const VALUE = { name: 1 };
const ENTRY = { key: 1, value: 2 };
const DATA = { float32: 1, uint8: 2, int8: 3, float16: 10, bfloat16: 16 };

/** @throws TrawlError MODEL_INVALID if the file cannot be read or is not an ONNX graph. */
export async function readOnnxFacts(path: string): Promise<OnnxFacts> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const { size } = await file.stat();
    return await readGraphs(new ProtobufFile(file, size));
  } catch (cause) {
    throw invalidModel(
      `${path} is not an ONNX file, or is damaged: ${(cause as Error).message}. Fetch or export it again.`,
      { cause },
    );
  } finally {
    await file?.close();
  }
}

async function readGraphs(file: ProtobufFile): Promise<OnnxFacts> {
  const inputs: string[] = [];
  const outputs: string[] = [];
  const externalData = new Set<string>();
  const weights = new Map<number, number>();
  let isQuantized = false;

  const readTensor = async (tensor: ProtobufField): Promise<void> => {
    let elements = 1;
    let type = 0;
    for await (const field of file.fields(tensor)) {
      if (field.number === TENSOR.dims) {
        for (const dimension of await file.numbers(field)) elements *= dimension;
      } else if (field.number === TENSOR.dataType) type = field.value;
      else if (field.number === TENSOR.externalData && (await file.text(field, ENTRY.key)) === 'location') {
        externalData.add(await file.text(field, ENTRY.value));
      }
    }
    weights.set(type, (weights.get(type) ?? 0) + elements);
  };

  for await (const graph of file.fields()) {
    if (graph.number !== MODEL.graph) continue;
    for await (const field of file.fields(graph)) {
      if (field.number === GRAPH.node) {
        isQuantized ||= QUANTIZED_OPERATORS.test(await file.text(field, NODE.operator));
      } else if (field.number === GRAPH.initializer) await readTensor(field);
      else if (field.number === GRAPH.input) inputs.push(await file.text(field, VALUE.name));
      else if (field.number === GRAPH.output) outputs.push(await file.text(field, VALUE.name));
    }
  }
  if (outputs.length === 0) throw new RangeError('it has no graph');
  const count = (...types: number[]) => types.reduce((sum, type) => sum + (weights.get(type) ?? 0), 0);
  const half = count(DATA.float16, DATA.bfloat16);
  const [whole, bytes] = [count(DATA.float32), count(DATA.int8, DATA.uint8)];
  // The type of most weights. A graph with quantised operators is int8, because these may pack their weights.
  const precision = isQuantized || bytes > whole + half ? 'int8' : half > whole ? 'float16' : 'float32';
  return { inputs, outputs, precision, externalData: [...externalData] };
}

interface ProtobufField {
  readonly number: number;
  /** Value of a varint; 0 for other wire types. */
  readonly value: number;
  /** Byte range of a string, a message or packed numbers; start = end for a varint. */
  readonly start: number;
  readonly end: number;
}

const WINDOW_BYTES = 64 * 1024;
const MAX_VARINT_BYTES = 10;

/** Reads parts of protobuf messages of any size from a file. Throws RangeError for invalid bytes. */
class ProtobufFile {
  readonly #file: FileHandle;
  readonly #size: number;
  #start = 0;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
  }

  /** The fields of a message, by default of the whole file; fixed-width numbers are skipped. */
  async *fields({ start, end } = { start: 0, end: this.#size }): AsyncGenerator<ProtobufField, void> {
    for (let at = start; at < end; ) {
      const [tag, afterTag] = await this.#varint(at);
      const number = Math.floor(tag / 8);
      const wireType = tag % 8;
      if (wireType === 0) {
        const [value, next] = await this.#varint(afterTag);
        yield { number, value, start: next, end: next };
        at = next;
      } else if (wireType === 1 || wireType === 5) {
        at = afterTag + (wireType === 1 ? 8 : 4);
      } else if (wireType === 2) {
        const [length, from] = await this.#varint(afterTag);
        if (from + length > end) throw new RangeError(`a field of ${length} bytes at byte ${from} exceeds its message`);
        yield { number, value: 0, start: from, end: from + length };
        at = from + length;
      } else throw new RangeError(`no field starts at byte ${at}`);
    }
  }

  /** The first string field with this number in a message; empty if there is none. */
  async text(message: ProtobufField, number: number): Promise<string> {
    for await (const { number: found, start, end } of this.fields(message)) {
      if (found !== number) continue;
      if (end - start > WINDOW_BYTES) throw new RangeError(`a name has ${end - start} bytes`);
      return new TextDecoder().decode(await this.#at(start, end - start));
    }
    return '';
  }

  /** The numbers of a repeated field, packed or single. */
  async numbers({ value, start, end }: ProtobufField): Promise<number[]> {
    if (start === end) return [value];
    const numbers: number[] = [];
    for (let at = start; at < end; ) {
      const [number, next] = await this.#varint(at);
      numbers.push(number);
      at = next;
    }
    return numbers;
  }

  /** An unsigned integer and its end; not exact beyond 2^53. */
  async #varint(at: number): Promise<[number, number]> {
    const bytes = await this.#at(at, Math.min(MAX_VARINT_BYTES, this.#size - at));
    let value = 0;
    for (let i = 0; i < bytes.length; i++) {
      value += (bytes[i]! & 127) * 2 ** (7 * i);
      if (bytes[i]! < 128) return [value, at + i + 1];
    }
    throw new RangeError(`no number starts at byte ${at}`);
  }

  async #at(start: number, length: number): Promise<Uint8Array> {
    if (start < this.#start || start + length > this.#start + this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(0, Math.min(WINDOW_BYTES, this.#size - start)));
      const { bytesRead } = await this.#file.read(bytes, 0, bytes.length, start);
      this.#start = start;
      this.#bytes = bytes.subarray(0, bytesRead);
    }
    return this.#bytes.subarray(start - this.#start, start - this.#start + length);
  }
}
