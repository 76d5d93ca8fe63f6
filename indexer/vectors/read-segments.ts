import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import { decodeFloat16 } from '../../src/base/system/float16.ts';
import type { NativeRows } from '../../src/engine/native/kernel.ts';
import { firstNonFinite } from '../../src/engine/typed-arrays.ts';
import { DTYPE_BYTES, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';

const BLOCK_BYTES = 8 * 1024 * 1024;

export interface SegmentBlock {
  /** Number of the block's first row in the segments. */
  readonly first: number;
  readonly count: number;
  /** Row-major float32. Overwritten when the next block is requested. */
  readonly values: Float32Array;
  /** The bytes of the files, split at the ends of segments. */
  readonly parts: readonly { readonly segment: number; readonly bytes: Uint8Array }[];
}

/** The error codes for a file that cannot be opened, or that ends before its rows: a file of an index, or a vector file for a build. */
const FILE_ERRORS = {
  index: {
    missing: 'INDEX_FILE_MISSING',
    short: 'INDEX_FILE_TRUNCATED',
    advice: 'Restore the file or build the index again.',
  },
  build: { missing: 'VECTORS_NOT_FOUND', short: 'VECTORS_INVALID', advice: 'Check the path, or copy the file again.' },
} as const;
type FileErrors = (typeof FILE_ERRORS)[keyof typeof FILE_ERRORS];

/**
 * Reads the rows of segments, from row `first`, in blocks. Reads the next block while the caller processes one.
 *
 * @param options.files whose files these are. Default: `index`.
 * @throws TrawlError CANCELLED; INDEX_FILE_MISSING and INDEX_FILE_TRUNCATED, for a build VECTORS_NOT_FOUND and VECTORS_INVALID.
 */
export async function* readSegments(
  segments: readonly VectorSegment[],
  dimension: number,
  {
    first = 0,
    files: owner = 'index',
    signal,
  }: { first?: number; files?: keyof typeof FILE_ERRORS; signal?: AbortSignal } = {},
): AsyncGenerator<SegmentBlock> {
  const errors = FILE_ERRORS[owner];
  const dtype = segments[0]?.dtype ?? 'float32';
  const rowBytes = dimension * DTYPE_BYTES[dtype];
  const rows = segments.reduce((sum, { bytes }) => sum + bytes, 0) / rowBytes;
  const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / rowBytes));
  const files: FileHandle[] = [];
  // One block is read while the other is processed; float16 is widened into a third.
  const buffers = [0, 1].map(() => new Uint8Array(Math.min(rows, rowsPerBlock) * rowBytes));
  const widened = dtype === 'float16' ? new Float32Array(Math.min(rows, rowsPerBlock) * dimension) : undefined;
  const read = async (row: number): Promise<SegmentBlock> => {
    const count = Math.min(rowsPerBlock, rows - row);
    const bytes = buffers[Math.floor(row / rowsPerBlock) % 2]!.subarray(0, count * rowBytes);
    const parts = await readParts(files, segments, row * rowBytes, bytes, errors);
    const values = widened === undefined ? new Float32Array(bytes.buffer, 0, count * dimension) : widened;
    return { first: row, count, values, parts };
  };
  let next: Promise<SegmentBlock> | undefined;
  try {
    for (const segment of segments) {
      const file = await openFile(segment.path, errors);
      files.push(file);
      if ((await file.stat()).size < segment.offset + segment.bytes) throw endsEarly(segment, errors);
    }
    for (let row = first; row < rows; ) {
      throwIfCancelled(signal);
      const block = await (next ?? read(row));
      row += block.count;
      next = row < rows ? read(row) : undefined;
      // The block is awaited later; until then, a failure must not count as an unhandled rejection.
      next?.catch(() => undefined);
      if (widened === undefined) yield block;
      else {
        const bytes = buffers[Math.floor(block.first / rowsPerBlock) % 2]!;
        decodeFloat16(bytes, widened, block.count * dimension);
        yield { ...block, values: widened.subarray(0, block.count * dimension) };
      }
    }
  } finally {
    await next?.catch(() => undefined);
    for (const file of files) await file.close();
  }
}

/** Moves the kept rows of a block to its front. Returns them. */
export function keptRows(values: Float32Array, dimension: number, isKept: (row: number) => boolean): Float32Array {
  const rows = values.length / dimension;
  let kept = 0;
  for (let row = 0; row < rows; row++) {
    if (!isKept(row)) continue;
    if (kept !== row) values.copyWithin(kept * dimension, row * dimension, (row + 1) * dimension);
    kept++;
  }
  return values.subarray(0, kept * dimension);
}

async function readParts(
  files: readonly FileHandle[],
  segments: readonly VectorSegment[],
  position: number,
  target: Uint8Array,
  errors: FileErrors,
): Promise<SegmentBlock['parts']> {
  const parts: { segment: number; bytes: Uint8Array }[] = [];
  let begin = 0;
  let done = 0;
  for (const [segment, { offset, bytes }] of segments.entries()) {
    const within = position + done - begin;
    if (done < target.length && within < bytes) {
      const part = target.subarray(done, done + Math.min(target.length - done, bytes - within));
      if (!(await readAll(files[segment]!, part, offset + within))) throw endsEarly(segments[segment]!, errors);
      parts.push({ segment, bytes: part });
      done += part.length;
    }
    begin += bytes;
  }
  return parts;
}

/** Fills `target`. False if the file ends before. */
async function readAll(file: FileHandle, target: Uint8Array, position: number): Promise<boolean> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await file.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) return false;
    done += bytesRead;
  }
  return true;
}

async function openFile(path: string, { missing, advice }: FileErrors): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    const message = `${path}: cannot be opened (${(cause as Error).message}). ${advice}`;
    throw new TrawlError(missing, message, { cause });
  }
}

function endsEarly({ path, offset, bytes }: VectorSegment, { short, advice }: FileErrors): TrawlError {
  return new TrawlError(short, `${path}: ends before byte ${offset + bytes}, where its rows end. ${advice}`);
}

export function shardSegments({ folder, manifest }: Pick<OpenedShard, 'folder' | 'manifest'>): VectorSegment[] {
  return manifest.vectors.map((segment) => ({ ...segment, path: within(folder, segment.path) }));
}

export function nativeRows(rows: number, segments: readonly VectorSegment[]): NativeRows {
  return { rows, dtype: segments[0]?.dtype ?? 'float32', segments };
}

/**
 * Reads the rows of a shard for a copy, as float32 in blocks, and hashes the bytes meanwhile. If a checksum differs from the
 * manifest, throws after the last block; the caller must then discard the copy. Otherwise the copy would get a checksum of
 * its own, and the damage could never be detected.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN with the file; the errors of `readSegments`.
 */
export async function* readCheckedRows(
  shard: OpenedShard,
  signal: AbortSignal | undefined,
): AsyncGenerator<Omit<SegmentBlock, 'parts'>> {
  const { manifest } = shard;
  const segments = shardSegments(shard);
  const ranges = manifest.vectors.map((segment) => checkedRange(segment, manifest.files));
  const hashes = segments.map(() => createHash('sha256'));
  for (const [i, { path, offset }] of segments.entries()) await hashBytes(hashes[i]!, path, ranges[i]!.first, offset);
  for await (const { first, count, values, parts } of readSegments(segments, manifest.dimension, { signal })) {
    for (const { segment, bytes } of parts) hashes[segment]!.update(bytes);
    yield { first, count, values };
  }
  for (const [i, { path, offset, bytes }] of segments.entries()) {
    const { sha256, first, end } = ranges[i]!;
    await hashBytes(hashes[i]!, path, offset + bytes, end);
    const found = hashes[i]!.digest('hex');
    if (found === sha256) continue;
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: sha256 of bytes ${first} to ${end} is ${found}, the manifest says ${sha256}. The vectors are not copied. ` +
        'Restore the file, or build the index again.',
      { details: { path } },
    );
  }
}

/** The bytes [first, end) that a checksum in the manifest covers: Trawl's whole file, or the rows of an adopted file. */
function checkedRange(
  segment: ShardManifest['vectors'][number],
  files: ShardManifest['files'],
): { sha256: string; first: number; end: number } {
  const { adopted, path, offset, bytes } = segment;
  if (adopted !== undefined) return { sha256: adopted.sha256, first: offset, end: offset + bytes };
  const record = files.find((file) => file.path === path);
  if (record === undefined) throw bug(`the manifest has no checksum of ${path}`);
  return { sha256: record.sha256, first: 0, end: record.bytes };
}

async function hashBytes(hash: Hash, path: string, first: number, end: number): Promise<void> {
  if (first >= end) return;
  for await (const chunk of createReadStream(path, { start: first, end: end - 1 })) hash.update(chunk as Buffer);
}

interface ReadRows {
  readonly values: Float32Array;
  /** Number of the first row in the shard. */
  readonly first: number;
  readonly segments: readonly VectorSegment[];
  readonly dimension: number;
}

/** The first value that is not finite: its row in the shard, column, file and byte offset there. Undefined if all are finite. */
export function findNonFinite({ values, first, segments, dimension }: ReadRows) {
  const bad = firstNonFinite(values);
  if (bad < 0) return undefined;
  const row = first + Math.floor(bad / dimension);
  const column = bad % dimension;
  let position = (row * dimension + column) * DTYPE_BYTES[segments[0]!.dtype];
  const { path, offset } = segments.find(({ bytes }) => {
    if (position < bytes) return true;
    position -= bytes;
    return false;
  })!;
  return { value: values[bad]!, row, column, path, byte: offset + position };
}

/**
 * @param firstRow number of the shard's first row in the index.
 * @throws TrawlError NON_FINITE_VECTOR with the file, the row in the index and the column.
 */
export function checkFinite(rows: ReadRows, firstRow: number): void {
  const found = findNonFinite(rows);
  if (found === undefined) return;
  const { value, column, path, byte } = found;
  const row = firstRow + found.row;
  throw new TrawlError(
    'NON_FINITE_VECTOR',
    `${path}: the vector of row ${row} has ${value} in column ${column} (byte ${byte}). Vectors must be finite: embed ` +
      'that passage again.',
    { details: { path, row, column } },
  );
}
