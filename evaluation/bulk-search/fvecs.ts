import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';

/** Bytes of the dimension before each vector. */
const HEAD_BYTES = 4;
const MAX_DIMENSION = 1 << 20;

/**
 * Reads `.fvecs`, the format of the SIFT and GIST data sets (http://corpus-texmex.irisa.fr): each vector is its dimension as a
 * little-endian int32, then its values as little-endian float32. All vectors of a file must have one dimension. Synchronous, so use it
 * only in commands.
 */
export class FvecsReader {
  readonly rows: number;
  readonly dimension: number;
  readonly #path: string;
  readonly #file: number;

  /** @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID. */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#file = openSync(path, 'r');
    } catch (cause) {
      throw new TrawlError('VECTORS_NOT_FOUND', `${path}: cannot be read (${(cause as Error).message}).`, { cause });
    }
    try {
      const bytes = fstatSync(this.#file).size;
      const head = Buffer.alloc(HEAD_BYTES);
      if (readSync(this.#file, head, 0, HEAD_BYTES, 0) < HEAD_BYTES) throw this.#invalid('it has no vector');
      this.dimension = head.readInt32LE();
      if (this.dimension < 1 || this.dimension > MAX_DIMENSION) {
        throw this.#invalid(`its first vector has ${this.dimension} dimensions, so it is not an .fvecs file`);
      }
      this.rows = bytes / this.#rowBytes;
      if (!Number.isInteger(this.rows)) {
        throw this.#invalid(
          `its ${bytes} bytes are not a multiple of ${this.#rowBytes}, the bytes of a vector of ${this.dimension}`,
        );
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @throws TrawlError VECTORS_INVALID if a vector has another dimension, or the file ends. */
  read(first: number, count: number, target: Float32Array): void {
    const bytes = Buffer.alloc(count * this.#rowBytes);
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(this.#file, bytes, done, bytes.length - done, first * this.#rowBytes + done);
      if (got === 0) throw this.#invalid('it became shorter while it was read');
      done += got;
    }
    for (let row = 0; row < count; row++) {
      const start = row * this.#rowBytes;
      const dimension = bytes.readInt32LE(start);
      if (dimension !== this.dimension) {
        throw this.#invalid(`vector ${first + row} has ${dimension} dimensions, the first one ${this.dimension}`);
      }
      for (let i = 0; i < dimension; i++) target[row * dimension + i] = bytes.readFloatLE(start + HEAD_BYTES + 4 * i);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  get #rowBytes(): number {
    return HEAD_BYTES + 4 * this.dimension;
  }

  #invalid(reason: string): TrawlError {
    return new TrawlError('VECTORS_INVALID', `${this.#path}: ${reason}.`, { details: { path: this.#path } });
  }
}
