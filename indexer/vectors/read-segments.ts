import { type FileHandle, open } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { decodeFloat16 } from '../../src/vector-index/float16.ts';
import { DTYPE_BYTES, type VectorSegment } from '../../src/vector-index/vector-segments.ts';

/** Bytes of one block. */
const BLOCK_BYTES = 8 * 1024 * 1024;

export interface SegmentBlock {
  /** Number of the block's first row among the rows of the segments. */
  readonly first: number;
  readonly count: number;
  /** Row-major float32. Valid until the next block is asked for. */
  readonly values: Float32Array;
  /** The bytes as they lie in the files, cut where a segment ends. */
  readonly pieces: readonly { readonly segment: number; readonly bytes: Uint8Array }[];
}

/**
 * The rows of segments from `first` on, block after block, each byte read once. While a block is looked at the next one is
 * read.
 *
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID where a file ends early, CANCELLED.
 */
export async function* readSegments(
  segments: readonly VectorSegment[],
  dimension: number,
  { first = 0, signal }: { first?: number; signal?: AbortSignal | undefined } = {},
): AsyncGenerator<SegmentBlock> {
  const dtype = segments[0]?.dtype ?? 'float32';
  const rowBytes = dimension * DTYPE_BYTES[dtype];
  const rows = segments.reduce((sum, { bytes }) => sum + bytes, 0) / rowBytes;
  const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / rowBytes));
  const files: FileHandle[] = [];
  // Two blocks take turns; float16 is widened into a third.
  const buffers = [0, 1].map(() => new Uint8Array(Math.min(rows, rowsPerBlock) * rowBytes));
  const widened = dtype === 'float16' ? new Float32Array(Math.min(rows, rowsPerBlock) * dimension) : undefined;
  const read = async (row: number): Promise<SegmentBlock> => {
    const count = Math.min(rowsPerBlock, rows - row);
    const bytes = buffers[Math.floor(row / rowsPerBlock) % 2]!.subarray(0, count * rowBytes);
    const pieces = await readPieces(files, segments, row * rowBytes, bytes);
    const values = widened === undefined ? new Float32Array(bytes.buffer, 0, count * dimension) : widened;
    return { first: row, count, values, pieces };
  };
  let next: Promise<SegmentBlock> | undefined;
  try {
    for (const segment of segments) files.push(await openFile(segment.path));
    for (let row = first; row < rows; ) {
      throwIfCancelled(signal);
      const block = await (next ?? read(row));
      row += block.count;
      next = row < rows ? read(row) : undefined;
      // Handled where it is awaited; until then a failure must not count as unhandled.
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

async function readPieces(
  files: readonly FileHandle[],
  segments: readonly VectorSegment[],
  position: number,
  target: Uint8Array,
): Promise<SegmentBlock['pieces']> {
  const pieces: { segment: number; bytes: Uint8Array }[] = [];
  let begin = 0;
  let done = 0;
  for (const [segment, { path, offset, bytes }] of segments.entries()) {
    const within = position + done - begin;
    if (done < target.length && within < bytes) {
      const piece = target.subarray(done, done + Math.min(target.length - done, bytes - within));
      await readAll(files[segment]!, path, piece, offset + within);
      pieces.push({ segment, bytes: piece });
      done += piece.length;
    }
    begin += bytes;
  }
  return pieces;
}

async function readAll(file: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await file.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) {
      throw new TrawlError(
        'VECTORS_INVALID',
        `${path}: ends at byte ${position + done}, before its rows do. Copy it again.`,
      );
    }
    done += bytesRead;
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    throw new TrawlError('VECTORS_NOT_FOUND', `${path}: cannot be opened (${(cause as Error).message}).`, { cause });
  }
}
