import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';

const WINDOW_BYTES = 256 * 1024;

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** Reads a pickle sequentially through a small buffer. `skip` passes over bytes without reading them. */
export class PickleBytes {
  readonly path: string;
  readonly size: number;
  readonly #file: number;
  readonly #window: Buffer;
  #windowStart = 0;
  #windowBytes = 0;
  #position = 0;

  /** @throws TrawlError PICKLE_INVALID if the file cannot be read. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#file = openSync(path, 'r');
    } catch (cause) {
      throw new TrawlError('PICKLE_INVALID', `Cannot read ${path}: ${(cause as Error).message}.`, { cause });
    }
    const stats = fstatSync(this.#file);
    this.size = stats.size;
    if (!stats.isFile()) {
      this.close();
      throw new TrawlError('PICKLE_INVALID', `${path} is not a regular file. Save the pickle to a file first.`);
    }
    this.#window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, this.size));
  }

  get position(): number {
    return this.#position;
  }

  byte(): number {
    const at = this.#hold(1);
    return this.#window[at]!;
  }

  uint16(): number {
    const at = this.#hold(2);
    return this.#window.readUInt16LE(at);
  }

  int32(): number {
    const at = this.#hold(4);
    return this.#window.readInt32LE(at);
  }

  uint32(): number {
    const at = this.#hold(4);
    return this.#window.readUInt32LE(at);
  }

  /** @throws TrawlError PICKLE_INVALID above 2^53, because lengths cannot be that large. */
  uint64(): number {
    const at = this.#hold(8);
    const value = this.#window.readBigUInt64LE(at);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.invalid(`a length of ${value} bytes is too large`);
    return Number(value);
  }

  /** A two's complement integer of at most 8 bytes. */
  integer(length: number): bigint {
    if (length > 8) throw this.invalid(`an integer of ${length} bytes is too large`);
    let value = 0n;
    const at = this.#hold(length);
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(this.#window[at + i]!);
    return BigInt.asIntN(8 * length, value);
  }

  /** UTF-8 of at most WINDOW_BYTES. */
  text(length: number): string {
    if (length > WINDOW_BYTES) throw this.invalid(`a text of ${length} bytes is too long`);
    const at = this.#hold(length);
    return this.#window.toString('utf8', at, at + length);
  }

  /** The text up to the next newline. Reads the newline, too. */
  line(): string {
    let text = '';
    for (let byte = this.byte(); byte !== 10; byte = this.byte()) {
      if (text.length === 1000) throw this.invalid('a line is too long');
      text += String.fromCharCode(byte);
    }
    return text;
  }

  skip(length: number): ByteRange {
    if (length > this.size - this.#position) throw this.#truncated();
    const offset = this.#position;
    this.#position += length;
    return { offset, length };
  }

  invalid(reason: string): TrawlError {
    return new TrawlError(
      'PICKLE_INVALID',
      `${this.path}: invalid at byte ${this.#position}: ${reason}. Expected a pickle (protocol 3 to 5) of a float32 or ` +
        'float16 array, a list of such arrays, or (array, ids). Write it again, or save the array with numpy.save.',
    );
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Makes the next `length` bytes available in the window and advances. Returns their offset in the window. */
  #hold(length: number): number {
    if (length > this.size - this.#position) throw this.#truncated();
    const inWindow = this.#position - this.#windowStart;
    const isHeld = inWindow >= 0 && inWindow + length <= this.#windowBytes;
    if (!isHeld) {
      this.#windowStart = this.#position;
      this.#windowBytes = 0;
      const wanted = Math.min(this.#window.length, this.size - this.#position);
      while (this.#windowBytes < wanted) {
        const at = this.#windowStart + this.#windowBytes;
        const got = readSync(this.#file, this.#window, this.#windowBytes, wanted - this.#windowBytes, at);
        if (got === 0) throw this.#truncated();
        this.#windowBytes += got;
      }
    }
    const at = this.#position - this.#windowStart;
    this.#position += length;
    return at;
  }

  #truncated(): TrawlError {
    return new TrawlError(
      'PICKLE_INVALID',
      `${this.path} is incomplete: it ends at byte ${this.size}, within the pickle. Copy or write it again.`,
    );
  }
}
