import { type FileHandle, open } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { decodeFloat16 } from '../../src/base/system/float16.ts';
import { DTYPE_BYTES, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

/** Block size in bytes. */
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

/**
 * Reads the rows of segments, from row `first`, in blocks. Reads the next block while the caller processes one.
 *
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID if a file ends early, CANCELLED.
 */
export async function* readSegments(
  segments: readonly VectorSegment[],
  dimension: number,
  { first = 0, signal }: { first?: number; signal?: AbortSignal } = {},
): AsyncGenerator<SegmentBlock> {
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
    const parts = await readParts(files, segments, row * rowBytes, bytes);
    const values = widened === undefined ? new Float32Array(bytes.buffer, 0, count * dimension) : widened;
    return { first: row, count, values, parts };
  };
  let next: Promise<SegmentBlock> | undefined;
  try {
    for (const segment of segments) files.push(await openFile(segment.path));
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

async function readParts(
  files: readonly FileHandle[],
  segments: readonly VectorSegment[],
  position: number,
  target: Uint8Array,
): Promise<SegmentBlock['parts']> {
  const parts: { segment: number; bytes: Uint8Array }[] = [];
  let begin = 0;
  let done = 0;
  for (const [segment, { path, offset, bytes }] of segments.entries()) {
    const within = position + done - begin;
    if (done < target.length && within < bytes) {
      const part = target.subarray(done, done + Math.min(target.length - done, bytes - within));
      await readAll(files[segment]!, path, part, offset + within);
      parts.push({ segment, bytes: part });
      done += part.length;
    }
    begin += bytes;
  }
  return parts;
}

async function readAll(file: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await file.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) {
      throw new TrawlError(
        'VECTORS_INVALID',
        `${path}: ends at byte ${position + done}, within its rows. Copy the file again.`,
      );
    }
    done += bytesRead;
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    throw new TrawlError('VECTORS_NOT_FOUND', `${path} cannot be opened: ${(cause as Error).message}.`, { cause });
  }
}
