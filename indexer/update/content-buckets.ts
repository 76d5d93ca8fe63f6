import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A record: the first bytes of a document's SHA-256, and its number as a little-endian float64. */
const HASH_BYTES = 16;
export const RECORD_BYTES = HASH_BYTES + 8;

/** Target number of records per bucket. Comparing two such buckets takes about 60 MB of memory. */
const BUCKET_RECORDS = 300_000;
/** Each bucket is an open file. */
const MAX_BUCKETS = 256;
const BUFFER_RECORDS = 2_000;

export function bucketCount(records: number): number {
  return Math.max(1, Math.min(MAX_BUCKETS, Math.ceil(records / BUCKET_RECORDS)));
}

/**
 * Hashes of numbered documents, distributed over files by content, so that equal documents are in the same bucket and each
 * bucket fits in memory. Among a billion documents, two different ones have the same 16 hash bytes with p < 10⁻²⁰.
 */
export class ContentBuckets {
  readonly #paths: readonly string[];
  readonly #files: number[];
  readonly #buffers: Buffer[];
  readonly #filled: number[];

  /** @param folder must exist. Overwrites files of the same name. */
  constructor(folder: string, name: string, buckets: number) {
    this.#paths = Array.from({ length: buckets }, (_, i) => join(folder, `${name}-${i}.bucket`));
    this.#files = [];
    try {
      for (const path of this.#paths) this.#files.push(openSync(path, 'w'));
    } catch (error) {
      this.close();
      throw error;
    }
    this.#buffers = this.#paths.map(() => Buffer.alloc(BUFFER_RECORDS * RECORD_BYTES));
    this.#filled = this.#paths.map(() => 0);
  }

  add(document: string, number: number): void {
    const hash = createHash('sha256').update(document).digest();
    const bucket = Math.floor((hash.readUInt32LE(HASH_BYTES) / 2 ** 32) * this.#paths.length);
    const buffer = this.#buffers[bucket]!;
    const at = this.#filled[bucket]!;
    hash.copy(buffer, at, 0, HASH_BYTES);
    buffer.writeDoubleLE(number, at + HASH_BYTES);
    this.#filled[bucket] = at + RECORD_BYTES;
    if (at + RECORD_BYTES === buffer.length) this.#flush(bucket);
  }

  /** Call after the last `add`, before `read`. */
  finish(): void {
    for (const bucket of this.#paths.keys()) this.#flush(bucket);
    this.close();
  }

  /** May be called twice. */
  close(): void {
    for (const file of this.#files.splice(0)) closeSync(file);
  }

  /** The records of a bucket in the order they were added. */
  read(bucket: number) {
    const bytes = readFileSync(this.#paths[bucket]!);
    return {
      count: bytes.length / RECORD_BYTES,
      /** The hash bytes of the document, which identify its content. */
      content: (record: number): string =>
        bytes.toString('latin1', record * RECORD_BYTES, record * RECORD_BYTES + HASH_BYTES),
      number: (record: number): number => bytes.readDoubleLE(record * RECORD_BYTES + HASH_BYTES),
    };
  }

  #flush(bucket: number): void {
    const bytes = this.#buffers[bucket]!.subarray(0, this.#filled[bucket]!);
    for (let written = 0; written < bytes.length; ) written += writeSync(this.#files[bucket]!, bytes.subarray(written));
    this.#filled[bucket] = 0;
  }
}

export type BucketRecords = ReturnType<ContentBuckets['read']>;
