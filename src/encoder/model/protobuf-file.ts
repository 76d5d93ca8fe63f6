import type { FileHandle } from 'node:fs/promises';

/** A field of a protobuf message in a file. */
export interface ProtobufField {
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
export class ProtobufFile {
  readonly #file: FileHandle;
  readonly #size: number;
  #start = 0;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
  }

  /** The fields in a byte range; fixed-width numbers are skipped. */
  async *fields(start = 0, end = this.#size): AsyncGenerator<ProtobufField, void> {
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
    for await (const { number: found, start, end } of this.fields(message.start, message.end)) {
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
