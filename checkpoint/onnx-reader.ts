import { type FileHandle, open } from 'node:fs/promises';
import { TrawlError } from '../src/errors.ts';

/** What is looked at in a graph that somebody else exported. */
export interface OnnxSummary {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Files, as the graph names them, that hold tensors of it. */
  readonly externalData: readonly string[];
  /** Elements of the graph's constants by ONNX's number of their type. */
  readonly elementsByType: ReadonlyMap<number, number>;
}

const WINDOW_BYTES = 64 * 1024;

/** Walks over an ONNX file without reading the weights in it. MODEL_INVALID where it is none. */
export async function summarizeOnnx(path: string): Promise<OnnxSummary> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const summary = new Summary(path, new FileWindow(path, file, size));
    await summary.walkModel(size);
    if (summary.outputs.length === 0) throw notOnnx(path, 'it has no graph');
    const { inputs, outputs, externalData, elementsByType } = summary;
    return { inputs, outputs, externalData: [...new Set(externalData)], elementsByType };
  } finally {
    await file.close();
  }
}

/** A part of a message: field number, wire type, and for strings and messages their byte range. */
interface Field {
  readonly number: number;
  readonly value: number;
  readonly start: number;
  readonly end: number;
}

class Summary implements OnnxSummary {
  readonly inputs: string[] = [];
  readonly outputs: string[] = [];
  readonly externalData: string[] = [];
  readonly elementsByType = new Map<number, number>();
  readonly #path: string;
  readonly #window: FileWindow;

  constructor(path: string, window: FileWindow) {
    this.#path = path;
    this.#window = window;
  }

  // Field numbers are those of onnx.proto.

  async walkModel(size: number): Promise<void> {
    for await (const field of this.#fields(0, size)) {
      if (field.number === 7) await this.#walkGraph(field);
    }
  }

  async #walkGraph(graph: Field): Promise<void> {
    for await (const field of this.#fields(graph.start, graph.end)) {
      if (field.number === 5) await this.#walkTensor(field);
      if (field.number === 11) this.inputs.push(await this.#stringOf(field, 1));
      if (field.number === 12) this.outputs.push(await this.#stringOf(field, 1));
    }
  }

  async #walkTensor(tensor: Field): Promise<void> {
    let elements = 1;
    let type = 0;
    for await (const field of this.#fields(tensor.start, tensor.end)) {
      if (field.number === 1 && field.start === field.end) elements *= field.value;
      // Packed, as most writers have it.
      if (field.number === 1 && field.start < field.end) elements *= await this.#product(field);
      if (field.number === 2) type = field.value;
      if (field.number === 13 && (await this.#stringOf(field, 1)) === 'location') {
        this.externalData.push(await this.#stringOf(field, 2));
      }
    }
    this.elementsByType.set(type, (this.elementsByType.get(type) ?? 0) + elements);
  }

  async #product(field: Field): Promise<number> {
    let product = 1;
    for (let at = field.start; at < field.end; ) {
      const [value, next] = await this.#window.varint(at);
      product *= value;
      at = next;
    }
    return product;
  }

  async #stringOf(message: Field, number: number): Promise<string> {
    for await (const field of this.#fields(message.start, message.end)) {
      if (field.number === number) return this.#window.text(field.start, field.end);
    }
    return '';
  }

  async *#fields(start: number, end: number): AsyncGenerator<Field> {
    for (let at = start; at < end; ) {
      const [tag, afterTag] = await this.#window.varint(at);
      const number = Math.floor(tag / 8);
      const wireType = tag % 8;
      if (wireType === 0) {
        const [value, next] = await this.#window.varint(afterTag);
        yield { number, value, start: next, end: next };
        at = next;
      } else if (wireType === 1 || wireType === 5) {
        at = afterTag + (wireType === 1 ? 8 : 4);
      } else if (wireType === 2) {
        const [length, from] = await this.#window.varint(afterTag);
        if (from + length > end) throw notOnnx(this.#path, `a part of ${length} bytes at byte ${from} does not fit`);
        yield { number, value: 0, start: from, end: from + length };
        at = from + length;
      } else throw notOnnx(this.#path, `byte ${at} begins no field`);
    }
  }
}

/** Bytes of a file at any place, read a window at a time. */
class FileWindow {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #size: number;
  #start = 0;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(path: string, file: FileHandle, size: number) {
    this.#path = path;
    this.#file = file;
    this.#size = size;
  }

  /** An unsigned integer and where it ends; beyond 2^53 it is not exact. */
  async varint(at: number): Promise<[number, number]> {
    const bytes = await this.#at(at, Math.min(10, this.#size - at));
    let value = 0;
    for (let i = 0; i < bytes.length; i++) {
      value += (bytes[i]! & 127) * 2 ** (7 * i);
      if (bytes[i]! < 128) return [value, at + i + 1];
    }
    throw notOnnx(this.#path, `byte ${at} begins no number`);
  }

  async text(start: number, end: number): Promise<string> {
    if (end - start > WINDOW_BYTES) throw notOnnx(this.#path, `it has a name of ${end - start} bytes`);
    return new TextDecoder().decode(await this.#at(start, end - start));
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

function notOnnx(path: string, reason: string): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path} is no ONNX file, or a damaged one: ${reason}. Fetch or export it again.`,
  );
}
