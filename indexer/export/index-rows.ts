import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { IndexSource } from '../../src/engine/vectors/index-source.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { requireVectors } from '../../src/index/manifest/vector-space.ts';
import { PassageFile, type StoredId } from '../../src/index/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';

/** Bytes of vectors read at once, as float32. */
const BLOCK_BYTES = 8 * 1024 * 1024;
/** Passages between two checks of the signal. */
const PASSAGES_BETWEEN_CHECKS = 4096;

export interface RowChoice {
  /** The rows to export; undefined: all. */
  readonly kept: RowBitmap | undefined;
  readonly signal?: AbortSignal;
}

export interface ExportedPassage {
  /** Row of the index. */
  readonly row: number;
  readonly id: StoredId | null;
  readonly document: string;
}

/** The vectors of an index. @throws TrawlError NOT_SUPPORTED for an index without vectors. */
export function vectorsOf({ folder, manifest, source }: IndexDirectory): IndexSource {
  requireVectors(folder, manifest);
  return source!;
}

/**
 * Reads the chosen vectors in row order: float32, row-major, in blocks of up to 8 MiB. The next block overwrites the memory of
 * the previous one.
 */
export async function* vectorBlocks(
  directory: IndexDirectory,
  { kept, signal }: RowChoice,
): AsyncGenerator<Float32Array, void> {
  const source = vectorsOf(directory);
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
        const chosen =
          kept === undefined ? count : compactBlock(block, { first: firstRow + first, count, dimension, kept });
        if (chosen > 0) yield block.subarray(0, chosen * dimension);
      }
    } finally {
      reader.close();
    }
  }
}

/** Moves the kept rows of a block to its front. Returns their number. */
function compactBlock(
  block: Float32Array,
  { first, count, dimension, kept }: { first: number; count: number; dimension: number; kept: RowBitmap },
): number {
  let chosen = 0;
  for (let i = 0; i < count; i++) {
    if (!kept.has(first + i)) continue;
    if (chosen !== i) block.copyWithin(chosen * dimension, i * dimension, (i + 1) * dimension);
    chosen++;
  }
  return chosen;
}

/**
 * Reads the chosen passages in row order.
 *
 * @throws TrawlError INDEX_FILE_TRUNCATED if the rows of a passage file differ from those of the index; INDEX_FILE_FOREIGN if a
 * page of the file is damaged.
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
        if (row !== next) throw damaged(path, `expected row ${next}, found row ${row}`);
        if (next++ % PASSAGES_BETWEEN_CHECKS === 0) {
          // Yield to the event loop, so that process signals are handled.
          await new Promise((resolve) => setImmediate(resolve));
          throwIfCancelled(signal);
        }
        if (kept?.has(firstRow + row) ?? true) yield { row: firstRow + row, id, document };
      }
      if (next !== rows) throw damaged(path, `${next} passages for ${rows} vectors`);
    } finally {
      file.close();
    }
  }
}

function damaged(path: string, reason: string): TrawlError {
  return new TrawlError(
    'INDEX_FILE_TRUNCATED',
    `${path}: ${reason}. Copy or build the index again; trawl verify shows what is damaged.`,
  );
}
