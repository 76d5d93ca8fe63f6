import { closeSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../src/errors.ts';
import type { VectorDtype, VectorSegment } from '../src/vector-index/vector-segments.ts';
import type { EmbeddingFile } from './embedding-set.ts';

/** What a header says that follows it. */
export interface HeaderFacts {
  /** Where the rows begin, from the beginning of the file with the header. */
  readonly offset: number;
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
}

/** Up to `bytes` bytes of a file from `offset` on. */
export function readPart({ path }: EmbeddingFile, bytes: number, offset = 0): Uint8Array {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw new TrawlError('VECTORS_NOT_FOUND', `${path}: cannot be opened (${(cause as Error).message}).`, { cause });
  }
  try {
    const head = new Uint8Array(bytes);
    return head.subarray(0, readSync(file, head, 0, bytes, offset));
  } finally {
    closeSync(file);
  }
}

/**
 * The rows behind the header of `files[first]`, which may go on in the files after it (a file that was cut in pieces by
 * size). The last piece has to end where the rows end.
 *
 * @throws TrawlError VECTORS_INVALID with both sizes where it does not.
 */
export function rowsBehindHeader(
  files: readonly EmbeddingFile[],
  first: number,
  { offset, rows, dimension, dtype }: HeaderFacts,
): { segments: VectorSegment[]; next: number } {
  const begun = files[first]!;
  const wanted = BigInt(rows) * BigInt(dimension) * (dtype === 'float16' ? 2n : 4n);
  const what = `its header says ${rows} rows of ${dimension} ${dtype}, which is ${BigInt(offset) + wanted} bytes`;
  if (wanted > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(begun.path, `${what}, more than any file has`);
  const segments: VectorSegment[] = [];
  let left = Number(wanted);
  let next = first;
  let from = offset;
  for (; next < files.length && (left > 0 || next === first); next++, from = 0) {
    const { path, bytes } = files[next]!;
    const there = Math.max(0, bytes - from);
    if (there > left) {
      const there = files.slice(first, next + 1).reduce((sum, file) => sum + file.bytes, 0);
      const where = next === first ? 'the file has' : `with its pieces up to ${path} there are`;
      throw invalid(begun.path, `${what}, but ${where} ${there}`);
    }
    if (there > 0) segments.push({ path, offset: from, bytes: there, dtype });
    left -= there;
  }
  if (left > 0) {
    const there = files.slice(first).reduce((sum, file) => sum + file.bytes, 0);
    throw invalid(
      begun.path,
      `${what}, but there are ${there}. Copy it again, or name all its pieces in order (part_aa part_ab …)`,
    );
  }
  return { segments, next };
}

export function invalid(path: string, reason: string): TrawlError {
  return new TrawlError('VECTORS_INVALID', `${path}: ${reason}.`, { details: { path } });
}
