import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { bug, TrawlError } from '../errors.ts';
import type { Metric } from '../metric.ts';
import { encodeFlatHeader, FAISS_HEADER_BYTES, faissMetric, flatFileBytes } from './faiss-format.ts';
import type { VectorSegment } from './vector-segments.ts';

export interface WrittenVectors {
  /** Name of the file within its folder is the caller's; offset and bytes are of the rows, without the header. */
  readonly segment: VectorSegment;
  readonly fileBytes: number;
  /** SHA-256 of the whole file, hex. */
  readonly sha256: string;
}

/**
 * Streams rows to a FAISS flat file. The number of rows is known beforehand, so the header is final from the first byte
 * and each byte is written once.
 */
export class FlatIndexWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #dimension: number;
  readonly #rows: number;
  readonly #hash: Hash;
  #written = 0;

  private constructor(path: string, file: FileHandle, dimension: number, rows: number, hash: Hash) {
    this.#path = path;
    this.#file = file;
    this.#dimension = dimension;
    this.#rows = rows;
    this.#hash = hash;
  }

  static async create(
    path: string,
    shape: { rows: number; dimension: number; metric: Metric },
  ): Promise<FlatIndexWriter> {
    const header = encodeFlatHeader({ ...shape, metric: faissMetric(shape.metric) });
    const file = await open(path, 'w');
    await file.writeFile(header);
    return new FlatIndexWriter(path, file, shape.dimension, shape.rows, createHash('sha256').update(header));
  }

  get rowsWritten(): number {
    return this.#written;
  }

  /**
   * @param rows row-major, any number of rows.
   * @throws TrawlError NON_FINITE_VECTOR with row and column; nothing of the block is written then.
   */
  async append(rows: Float32Array): Promise<void> {
    const count = rows.length / this.#dimension;
    if (!Number.isInteger(count) || this.#written + count > this.#rows) {
      throw bug(`${rows.length} values appended to ${this.#written} of ${this.#rows} rows of ${this.#dimension}`);
    }
    const bad = rows.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) {
      const row = this.#written + Math.floor(bad / this.#dimension);
      const column = bad % this.#dimension;
      throw new TrawlError('NON_FINITE_VECTOR', `The vector of row ${row} holds ${rows[bad]} in column ${column}.`, {
        details: { row, column },
      });
    }
    const bytes = new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength);
    await this.#file.writeFile(bytes);
    this.#hash.update(bytes);
    this.#written += count;
  }

  /** Makes the file durable. @throws when fewer rows were appended than announced. */
  async finish(): Promise<WrittenVectors> {
    if (this.#written !== this.#rows) throw bug(`${this.#written} of ${this.#rows} rows written`);
    await this.#file.sync();
    await this.#file.close();
    const fileBytes = flatFileBytes(this.#rows, this.#dimension);
    const segment: VectorSegment = {
      path: this.#path,
      offset: FAISS_HEADER_BYTES,
      bytes: fileBytes - FAISS_HEADER_BYTES,
      dtype: 'float32',
    };
    return { segment, fileBytes, sha256: this.#hash.digest('hex') };
  }

  /** Closes without finishing: after an error. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
  }
}
