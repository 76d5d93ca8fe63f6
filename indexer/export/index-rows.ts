import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { PassageFile, type StoredId } from '../../src/index/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { keptRows, readSegments } from '../vectors/read-segments.ts';

/** Passages between two checks of the signal. */
const PASSAGES_BETWEEN_CHECKS = 4096;

export interface RowChoice {
  /** The rows to export; undefined: all. */
  readonly kept: RowBitmap | undefined;
  readonly signal?: AbortSignal;
}

export interface ExportedPassage {
  readonly row: number;
  readonly id: StoredId | null;
  readonly document: string;
}

/**
 * Reads the chosen vectors of an index that has vectors, in row order: float32, row-major, in blocks. The next block overwrites the
 * memory of the previous one.
 */
export async function* vectorBlocks(
  { source }: IndexDirectory,
  { kept, signal }: RowChoice,
): AsyncGenerator<Float32Array, void> {
  const { dimension, shards } = source!;
  for (const { firstRow, segments } of shards) {
    for await (const { first, values } of readSegments(segments, dimension, { signal })) {
      const chosen =
        kept === undefined ? values : keptRows(values, dimension, (row) => kept.has(firstRow + first + row));
      if (chosen.length > 0) yield chosen;
    }
  }
}

/**
 * Reads the chosen passages in row order.
 *
 * @throws TrawlError INDEX_FILE_TRUNCATED if a passage file and the index have different rows; INDEX_FILE_FOREIGN if a
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
          await setImmediate();
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
