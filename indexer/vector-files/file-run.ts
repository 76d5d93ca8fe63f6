import { closeSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import { DTYPE_BYTES, type VectorDtype, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { VectorFile, VectorPart } from './vector-file-set.ts';

/** The rows that follow a header, as the header describes them. */
export interface HeaderFacts {
  /** Byte offset of the first row in the file. */
  readonly offset: number;
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
}

/** Reads up to `bytes` bytes of a vector file from `offset`. @throws TrawlError VECTORS_NOT_FOUND if it cannot be opened. */
export function readPart({ path }: VectorFile, bytes: number, offset = 0): Uint8Array {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw new TrawlError('VECTORS_NOT_FOUND', `Cannot open ${path}: ${(cause as Error).message}.`, { cause });
  }
  try {
    const head = new Uint8Array(bytes);
    return head.subarray(0, readSync(file, head, 0, bytes, offset));
  } finally {
    closeSync(file);
  }
}

/**
 * Finds the rows that follow the header of the vector file `files[first]`. If that file was split into pieces (`split --bytes`), the
 * rows continue in the next files. `next` is the index of the first file that has none of these rows; it begins with a header of its
 * own, or is `files.length`.
 *
 * @throws TrawlError VECTORS_INVALID if the files do not end where the rows end.
 */
export function rowsBehindHeader(
  files: readonly VectorFile[],
  first: number,
  { offset, rows, dimension, dtype }: HeaderFacts,
): { segments: VectorSegment[]; next: number } {
  const head = files[first]!;
  const rowBytes = BigInt(rows) * BigInt(dimension) * (dtype === 'float16' ? 2n : 4n);
  const expected = `its header describes ${rows} rows of ${dimension} ${dtype}, so it should have ${BigInt(offset) + rowBytes} bytes`;
  if (rowBytes > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(head.path, `${expected}; no file is that large`);
  const segments: VectorSegment[] = [];
  let left = Number(rowBytes);
  let next = first;
  let from = offset;
  for (; next < files.length && (left > 0 || next === first); next++, from = 0) {
    const { path, bytes } = files[next]!;
    const available = Math.max(0, bytes - from);
    if (available > left) {
      const found = files.slice(first, next + 1).reduce((sum, file) => sum + file.bytes, 0);
      const subject = next === first ? 'it has' : `the files up to ${path} have`;
      throw invalid(head.path, `${expected}, but ${subject} ${found}`);
    }
    if (available > 0) segments.push({ path, offset: from, bytes: available, dtype });
    left -= available;
  }
  if (left > 0) {
    const found = files.slice(first).reduce((sum, file) => sum + file.bytes, 0);
    throw invalid(
      head.path,
      `${expected}, but there are only ${found}. Copy it again, or name all its pieces in order (part_aa part_ab …)`,
    );
  }
  return { segments, next };
}

export function invalid(path: string, reason: string): TrawlError {
  return new TrawlError('VECTORS_INVALID', `${path}: ${reason}.`, { details: { path } });
}

/** Rows within a single file, which may go on behind them. @throws TrawlError VECTORS_INVALID if they do not lie in the file. */
export function rowsWithin(
  { path, bytes }: VectorFile,
  { offset, rows, dimension, dtype }: HeaderFacts,
  next: number,
): VectorPart {
  // BigInt, because the product of a damaged shape can exceed 2^53.
  const rowBytes = BigInt(rows) * BigInt(dimension) * BigInt(DTYPE_BYTES[dtype]);
  if (BigInt(offset) + rowBytes > BigInt(bytes)) {
    throw invalid(
      path,
      `its header describes ${rows} rows of ${dimension} ${dtype} from byte ${offset} on, but it has ${bytes} bytes. Copy it again`,
    );
  }
  const segments = rowBytes === 0n ? [] : [{ path, offset, bytes: Number(rowBytes), dtype }];
  return { rows, dimension, dtype, segments, next };
}

export function unsupported(path: string, reason: string, remedy: string): TrawlError {
  return new TrawlError('VECTORS_UNSUPPORTED', `${path}: ${reason}. ${remedy}`, { details: { path } });
}
