/**
 * Writes the protocol buffers wire format (https://protobuf.dev/programming-guides/encoding) into memory that is used again.
 * As in proto3, a field with the value 0 or without bytes is left out.
 */
export class MessageBuffer {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Valid until the next write. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  /** An int32 or int64 field; `value` is a safe integer and not negative. */
  integer(field: number, value: number): void {
    if (value === 0) return;
    this.#reserve(12);
    this.#bytes[this.#length++] = field * 8;
    this.#varint(value);
  }

  double(field: number, value: number): void {
    if (value === 0) return;
    this.#reserve(9);
    this.#bytes[this.#length++] = field * 8 + 1;
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** A string field, in UTF-8. */
  text(field: number, value: Uint8Array): void {
    if (value.length === 0) return;
    this.#reserve(12 + value.length);
    this.#bytes[this.#length++] = field * 8 + 2;
    this.#varint(value.length);
    this.append(value);
  }

  /** A field with a message of up to two integer fields, numbered 1 and 2, each below 2^32. */
  pair(field: number, first: number, second: number): void {
    this.#reserve(2);
    this.#bytes[this.#length] = field * 8 + 2;
    this.#length += 2;
    const start = this.#length;
    this.integer(1, first);
    this.integer(2, second);
    this.#bytes[start - 1] = this.#length - start;
  }

  /** A message behind its length, as in a file of several messages. */
  delimited(...parts: readonly MessageBuffer[]): void {
    this.#reserve(10);
    this.#varint(parts.reduce((sum, { length }) => sum + length, 0));
    for (const { bytes } of parts) this.append(bytes);
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest % 128) | 128;
    for (; rest > 127; rest >>= 7) this.#bytes[this.#length++] = (rest & 127) | 128;
    this.#bytes[this.#length++] = rest;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + more));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
