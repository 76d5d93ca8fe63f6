import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { PassageFile, type StoredId } from '../src/passages/passage-file.ts';
import type { IndexDirectory } from '../src/retrieval/index-directory.ts';
import type { RowBitmap } from '../src/vector-index/row-bitmap.ts';
import { SegmentReader } from '../src/vector-index/vector-segments.ts';

/** Vectors read at once. */
const BLOCK_BYTES = 8 * 1024 * 1024;
/** Passages between two looks at the signal. */
const PASSAGES_BETWEEN_LOOKS = 4096;

export interface RowChoice {
  /** The rows that go out; absent: all. */
  readonly kept: RowBitmap | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ExportedPassage {
  /** Row of the index. */
  readonly row: number;
  readonly id: StoredId | null;
  readonly document: string;
}

/** All vectors in row order as float32, row-major, in blocks of some megabytes; a block's memory is used again for the next. */
export async function* vectorBlocks(
  { source }: IndexDirectory,
  { kept, signal }: RowChoice,
): AsyncGenerator<Float32Array, void> {
  const { dimension } = source;
  const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
  const block = new Float32Array(rowsPerBlock * dimension);
  for (const { firstRow, rows, segments } of source.shards) {
    if (rows === 0) continue;
    const reader = new SegmentReader(segments, dimension);
    try {
      for (let first = 0; first < rows; first += rowsPerBlock) {
        throwIfCancelled(signal);
        const count = Math.min(rowsPerBlock, rows - first);
        reader.read(first, count, block);
        const left = kept === undefined ? count : dropRows(block, { first: firstRow + first, count, dimension, kept });
        if (left > 0) yield block.subarray(0, left * dimension);
      }
    } finally {
      reader.close();
    }
  }
}

/** Moves the kept rows of a block to its front; how many there are. */
function dropRows(
  block: Float32Array,
  { first, count, dimension, kept }: { first: number; count: number; dimension: number; kept: RowBitmap },
): number {
  let left = 0;
  for (let i = 0; i < count; i++) {
    if (!kept.has(first + i)) continue;
    if (left !== i) block.copyWithin(left * dimension, i * dimension, (i + 1) * dimension);
    left++;
  }
  return left;
}

/**
 * All passages in row order.
 *
 * @throws TrawlError INDEX_FILE_TRUNCATED where a passage file has other rows than the index.
 */
export async function* passagesOf(
  { passages }: IndexDirectory,
  { kept, signal }: RowChoice,
): AsyncGenerator<ExportedPassage, void> {
  for (const { path, firstRow, rows } of passages) {
    const file = new PassageFile(path);
    try {
      let next = 0;
      for (const { row, id, document } of file.passages()) {
        if (row !== next) throw otherRows(path, `row ${row} where row ${next} was expected`);
        if (next++ % PASSAGES_BETWEEN_LOOKS === 0) {
          // A turn of the event loop, for signals.
          await new Promise((resolve) => setImmediate(resolve));
          throwIfCancelled(signal);
        }
        if (kept?.has(firstRow + row) ?? true) yield { row: firstRow + row, id, document };
      }
      if (next !== rows) throw otherRows(path, `${next} passages for ${rows} vectors`);
    } catch (error) {
      if (error instanceof Error && error.name === 'SqliteError') throw otherRows(path, error.message, error);
      throw error;
    } finally {
      file.close();
    }
  }
}

function otherRows(path: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'INDEX_FILE_TRUNCATED',
    `${path}: ${reason}. trawl verify tells more; copy or build it again.`,
    cause === undefined ? {} : { cause },
  );
}
