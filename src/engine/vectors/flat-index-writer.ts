import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { bug, TrawlError } from '../../base/errors.ts';
import { writeAt } from '../../base/system/durable-file.ts';
import type { Metric } from '../metric.ts';
import { firstNonFinite } from '../typed-arrays.ts';
import { encodeFlatHeader, FAISS_HEADER_BYTES, faissMetric, flatFileBytes } from './faiss-format.ts';
import type { VectorSegment } from './vector-segments.ts';

export interface WrittenVectors {
  /** The range of the rows in the file, after the header. The caller replaces `path` with the name in the manifest. */
  readonly segment: VectorSegment;
  readonly fileBytes: number;
  /** SHA-256 of the whole file, hex. */
  readonly sha256: string;
}

export interface FlatShape {
  readonly rows: number;
  readonly dimension: number;
  readonly metric: Metric;
}

/** The state of the file at the last sync to the disk. */
export interface VectorCheckpoint {
  readonly rows: number;
  /** SHA-256 of the header and these rows, hex. */
  readonly sha256: string;
}

interface ResumeOptions {
  /** Called with the existing rows, row-major, a block at a time, so that the caller can make derived files again. */
  readonly onRows: (rows: Float32Array) => Promise<void>;
  readonly signal?: AbortSignal;
}

/** Bytes read at once by `resume`. */
const RESUME_BLOCK_BYTES = 8 * 1024 * 1024;

/** Writes rows to a FAISS flat file. The header is written first. It has the expected number of rows; `finish` corrects it. */
export class FlatIndexWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #shape: FlatShape;
  readonly #dimension: number;
  readonly #rows: number;
  #hash: Hash;
  #written = 0;

  private constructor(path: string, file: FileHandle, shape: FlatShape, header: Uint8Array) {
    this.#path = path;
    this.#file = file;
    this.#shape = shape;
    this.#dimension = shape.dimension;
    this.#rows = shape.rows;
    this.#hash = createHash('sha256').update(header);
  }

  static async create(path: string, shape: FlatShape): Promise<FlatIndexWriter> {
    const header = headerOf(shape);
    const file = await open(path, 'w+');
    const writer = new FlatIndexWriter(path, file, shape, header);
    try {
      await writeAt(file, header, 0);
    } catch (error) {
      await writer.abandon();
      throw error;
    }
    return writer;
  }

  /**
   * Resumes an unfinished file: compares the rows of the checkpoint with its checksum and truncates the file after them.
   * Undefined if the file is missing or differs from the checkpoint; the caller must then create it again.
   */
  static async resume(
    path: string,
    shape: FlatShape,
    checkpoint: VectorCheckpoint,
    { onRows, signal }: ResumeOptions,
  ): Promise<FlatIndexWriter | undefined> {
    const header = headerOf(shape);
    const file = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (file === undefined) return undefined;
    const writer = new FlatIndexWriter(path, file, shape, header);
    let resumed = false;
    try {
      const bytes = flatFileBytes(checkpoint.rows, shape.dimension);
      if (checkpoint.rows > shape.rows || (await file.stat()).size < bytes) return undefined;
      await writer.#readBack(checkpoint.rows, onRows, signal);
      if (writer.#hash.copy().digest('hex') !== checkpoint.sha256) return undefined;
      await file.truncate(bytes);
      // `finish` may have corrected it before the process was killed.
      await writeAt(file, header, 0);
      resumed = true;
      return writer;
    } finally {
      if (!resumed) await writer.abandon();
    }
  }

  get rowsWritten(): number {
    return this.#written;
  }

  /**
   * @param rows row-major, any number of rows.
   * @throws TrawlError NON_FINITE_VECTOR with row and column, before anything is written.
   */
  async append(rows: Float32Array): Promise<void> {
    const count = rows.length / this.#dimension;
    if (!Number.isInteger(count) || this.#written + count > this.#rows) {
      throw bug(`${rows.length} values appended to ${this.#written} of ${this.#rows} rows of ${this.#dimension}`);
    }
    const bad = firstNonFinite(rows);
    if (bad >= 0) {
      const row = this.#written + Math.floor(bad / this.#dimension);
      const column = bad % this.#dimension;
      const message = `The vector of row ${row} has ${rows[bad]} in column ${column}; vectors must be finite.`;
      throw new TrawlError('NON_FINITE_VECTOR', message, { details: { row, column } });
    }
    const bytes = new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength);
    const writing = writeAt(this.#file, bytes, flatFileBytes(this.#written, this.#dimension));
    // Hash while the disk writes.
    this.#hash.update(bytes);
    await writing;
    this.#written += count;
  }

  /** Syncs the appended rows to the disk. */
  async checkpoint(): Promise<VectorCheckpoint> {
    const checkpoint = { rows: this.#written, sha256: this.#hash.copy().digest('hex') };
    await this.#file.datasync();
    return checkpoint;
  }

  /** Syncs the file to the disk and closes it. @throws if not all rows of the shape but `missing` were appended. */
  async finish(missing = 0, signal?: AbortSignal): Promise<WrittenVectors> {
    const rows = this.#written;
    if (rows + missing !== this.#rows) throw bug(`${rows} of ${this.#rows - missing} rows written`);
    if (missing > 0) {
      const header = headerOf({ ...this.#shape, rows });
      await writeAt(this.#file, header, 0);
      this.#hash = createHash('sha256').update(header);
      this.#written = 0;
      await this.#readBack(rows, async () => undefined, signal);
    }
    await this.#file.sync();
    await this.#file.close();
    const fileBytes = flatFileBytes(rows, this.#dimension);
    const segment: VectorSegment = {
      path: this.#path,
      offset: FAISS_HEADER_BYTES,
      bytes: fileBytes - FAISS_HEADER_BYTES,
      dtype: 'float32',
    };
    return { segment, fileBytes, sha256: this.#hash.digest('hex') };
  }

  /** Closes an unfinished file after an error. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
  }

  async #readBack(rows: number, onRows: ResumeOptions['onRows'], signal: AbortSignal | undefined): Promise<void> {
    const dimension = this.#dimension;
    const rowsPerBlock = Math.max(1, Math.floor(RESUME_BLOCK_BYTES / (dimension * 4)));
    while (this.#written < rows) {
      throwIfCancelled(signal);
      const count = Math.min(rowsPerBlock, rows - this.#written);
      const bytes = await readAll(this.#file, count * dimension * 4, flatFileBytes(this.#written, dimension));
      this.#hash.update(bytes);
      await onRows(new Float32Array(bytes.buffer, bytes.byteOffset, count * dimension));
      this.#written += count;
    }
  }
}

function headerOf(shape: FlatShape): Uint8Array {
  return encodeFlatHeader({ ...shape, metric: faissMetric(shape.metric) });
}

async function readAll(file: FileHandle, length: number, position: number): Promise<Buffer> {
  // Not from Buffer's pool, so that it is aligned for float32.
  const bytes = Buffer.from(new ArrayBuffer(length));
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) return bytes.subarray(0, done);
    done += bytesRead;
  }
  return bytes;
}
