import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../base/errors.ts';
import { decodeFloat16 } from '../../base/system/float16.ts';

export const VECTOR_DTYPES = ['float32', 'float16'] as const;
export type VectorDtype = (typeof VECTOR_DTYPES)[number];

/**
 * A byte range of a file. The concatenated segments of a shard are its matrix of rows, row-major. A row may continue in the
 * next segment (in files that were split by size), and an offset need not be aligned.
 */
export interface VectorSegment {
  /** Absolute path. */
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
  /** Present if the file belongs to others than the index. */
  readonly adopted?: { fileBytes: number; sha256: string; sample: string } | undefined;
  /** The same for all segments of a shard. */
  readonly dtype: VectorDtype;
}

export const DTYPE_BYTES: Readonly<Record<VectorDtype, number>> = { float32: 4, float16: 2 };

/** Reads rows of a shard from its segments. Synchronous, so use it only in worker threads and commands. */
export class SegmentReader {
  readonly dimension: number;
  readonly rows: number;
  readonly #segments: readonly VectorSegment[];
  readonly #files: number[] = [];
  readonly #dtype: VectorDtype;
  #raw = new Uint8Array(0);

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_TRUNCATED with the file. */
  constructor(segments: readonly VectorSegment[], dimension: number) {
    this.dimension = dimension;
    this.#segments = segments;
    this.#dtype = segments[0]?.dtype ?? 'float32';
    const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    this.rows = bytes / (dimension * DTYPE_BYTES[this.#dtype]);
    if (!Number.isInteger(this.rows) || segments.some((segment) => segment.dtype !== this.#dtype)) {
      throw new TrawlError(
        'INDEX_MANIFEST_INVALID',
        `The vector segments have ${bytes} bytes, which is not a multiple of the row size (${dimension} ${this.#dtype}).`,
      );
    }
    try {
      for (const segment of segments) this.#files.push(openSegment(segment));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Fills `target` (row-major, `count` × dimension, from index 0) with rows [first, first + count). */
  read(first: number, count: number, target: Float32Array): void {
    const rowBytes = this.dimension * DTYPE_BYTES[this.#dtype];
    const bytes = count * rowBytes;
    if (first < 0 || first + count > this.rows) {
      throw new RangeError(`rows [${first}, ${first + count}) of ${this.rows}`);
    }
    // A short view must be rejected, because the bytes would overwrite the rest of its buffer.
    if (target.length < count * this.dimension) {
      throw new RangeError(`${target.length} values are too few for ${count} rows of ${this.dimension}`);
    }
    if (this.#dtype === 'float32') {
      this.#readBytes(first * rowBytes, new Uint8Array(target.buffer, target.byteOffset, bytes));
    } else {
      if (this.#raw.length < bytes) this.#raw = new Uint8Array(bytes);
      this.#readBytes(first * rowBytes, this.#raw.subarray(0, bytes));
      decodeFloat16(this.#raw, target, count * this.dimension);
    }
  }

  close(): void {
    for (const file of this.#files.splice(0)) closeSync(file);
  }

  #readBytes(position: number, target: Uint8Array): void {
    let segmentStart = 0;
    let done = 0;
    for (const [i, segment] of this.#segments.entries()) {
      const segmentEnd = segmentStart + segment.bytes;
      while (done < target.length && position + done >= segmentStart && position + done < segmentEnd) {
        const within = position + done - segmentStart;
        const wanted = Math.min(target.length - done, segment.bytes - within);
        const got = readSync(this.#files[i]!, target, done, wanted, segment.offset + within);
        if (got === 0) throw truncated(segment);
        done += got;
      }
      segmentStart = segmentEnd;
    }
  }
}

function openSegment(segment: VectorSegment): number {
  let file: number;
  try {
    file = openSync(segment.path, 'r');
  } catch (cause) {
    const message = `${segment.path}: cannot be opened. Restore the file or build the index again.`;
    throw new TrawlError('INDEX_FILE_MISSING', message, { cause });
  }
  if (fstatSync(file).size < segment.offset + segment.bytes) {
    closeSync(file);
    throw truncated(segment);
  }
  return file;
}

function truncated(segment: VectorSegment): TrawlError {
  return new TrawlError(
    'INDEX_FILE_TRUNCATED',
    `${segment.path}: ends before byte ${segment.offset + segment.bytes}, where its rows should end. Copy or build it again.`,
  );
}
