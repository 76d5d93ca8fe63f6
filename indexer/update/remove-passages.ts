import { throwIfCancelled } from '../../src/base/abort.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { changeIndex } from './claim-update.ts';
import { lastReading } from './last-reading.ts';
import { publishGeneration, removeLeftovers } from './publish-generation.ts';

const CHECK_EVERY = 1_000;
const EXAMPLES = 10;

export interface RemoveSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  /** Number of rows deleted: all live rows with one of the ids. */
  readonly removed: number;
  /** Number of ids without a live row. */
  readonly unknownIds: number;
  readonly unknownExamples: readonly string[];
}

/**
 * Deletes the rows with the given ids. Integer ids are given in decimal. Rows keep their numbers; only the manifest and the
 * bitmap of deleted rows are written.
 *
 * @throws TrawlError as `changeIndex`; DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED. An error leaves the index unchanged.
 */
export async function removePassages(
  index: string,
  ids: AsyncIterable<string> | Iterable<string>,
  { signal }: { signal?: AbortSignal } = {},
): Promise<RemoveSummary> {
  return changeIndex(index, async (directory, output) => {
    const { manifest: before, liveRows } = directory;
    const deletedRows = liveRows?.complement() ?? new RowBitmap(before.rows);
    const found = await markRows(directory, ids, deletedRows, signal);
    throwIfCancelled(signal);
    let manifest = before;
    if (found.removed > 0) {
      await removeLeftovers(directory.folder, before);
      const paths = directory.passages.map(({ path }) => path);
      const duplicates = duplicateIds(paths, { exampleCount: 0, liveRows: deletedRows.complement(), signal });
      const reading = lastReading(before, directory.shards[0]?.manifest);
      manifest = await publishGeneration(directory, output.folder, {
        newShards: [],
        deletedRows,
        corpus: { ...before.corpus, duplicateIds: duplicates.count },
        lastUpdate: { kind: 'remove', before: before.generation, reading },
      });
    }
    return { folder: output.final, manifest, ...found };
  });
}

async function markRows(
  { passages }: IndexDirectory,
  ids: AsyncIterable<string> | Iterable<string>,
  deletedRows: RowBitmap,
  signal: AbortSignal | undefined,
): Promise<Pick<RemoveSummary, 'removed' | 'unknownIds' | 'unknownExamples'>> {
  const files: { firstRow: number; file: PassageFile }[] = [];
  let [removed, unknownIds, done] = [0, 0, 0];
  const unknownExamples: string[] = [];
  try {
    for (const { path, firstRow } of passages) files.push({ firstRow, file: new PassageFile(path) });
    for await (const id of ids) {
      if (++done % CHECK_EVERY === 0) throwIfCancelled(signal);
      let isKnown = false;
      for (const { firstRow, file } of files) {
        for (const row of file.find('id', id, Number.MAX_SAFE_INTEGER)) {
          if (deletedRows.has(firstRow + row)) continue;
          deletedRows.add(firstRow + row);
          removed++;
          isKnown = true;
        }
      }
      if (isKnown) continue;
      unknownIds++;
      if (unknownExamples.length < EXAMPLES) unknownExamples.push(id);
    }
  } finally {
    for (const { file } of files) file.close();
  }
  return { removed, unknownIds, unknownExamples };
}
