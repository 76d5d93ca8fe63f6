import { realpathSync } from 'node:fs';
import { throwIfCancelled } from '../../src/abort.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { RowBitmap } from '../../src/vector-index/row-bitmap.ts';
import { OutputFolder } from '../build/output-folder.ts';
import { writeFailure } from '../write-failure.ts';
import { checkNothingBegun } from './claim-update.ts';
import { publishGeneration, removeLeftovers } from './publish-generation.ts';

/** Ids between two looks at the signal. */
const LOOK_EVERY = 1_000;
const EXAMPLES = 10;

export interface RemoveSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  /** Passages that were removed: all that have one of the ids. */
  readonly removed: number;
  /** Ids that no passage has, or none any more. */
  readonly unknownIds: number;
  readonly unknownExamples: readonly string[];
}

/**
 * Removes the passages that have one of the ids (an integer as its decimal digits). Rows keep their numbers, nothing is
 * rewritten. Doing it again finds nothing to do.
 *
 * @throws TrawlError INDEX_NOT_FOUND, BUILD_LOCKED while another process is at work there, BUILD_DIFFERS where an update is
 * to be finished first, DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the index's files. The index is the old one then.
 */
export async function removePassages(
  index: string,
  ids: AsyncIterable<string> | Iterable<string>,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<RemoveSummary> {
  readIndexManifest(index);
  const output = await OutputFolder.prepare(realpathSync(index), true);
  let isOurs = false;
  try {
    const directory = openIndexDirectory(output.final);
    checkNothingBegun(output, directory);
    isOurs = true;
    const { manifest: before, source } = directory;
    const removedRows = source.alive?.complement() ?? new RowBitmap(source.rows);
    const found = await markRows(directory, ids, removedRows, signal);
    throwIfCancelled(signal);
    let manifest = before;
    if (found.removed > 0) {
      await removeLeftovers(directory.folder, before);
      const paths = directory.passages.map(({ path }) => path);
      const duplicates = duplicateIds(paths, { exampleCount: 0, alive: removedRows.complement(), signal });
      manifest = await publishGeneration(directory, output.partial, {
        shards: [],
        removedRows,
        corpus: { ...before.corpus, duplicateIds: duplicates.count },
        lastUpdate: { kind: 'remove', before: before.generation, reading: null },
      });
    }
    return { folder: output.final, manifest, ...found };
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    if (isOurs) await output.discard();
    else output.release();
  }
}

async function markRows(
  { passages }: IndexDirectory,
  ids: AsyncIterable<string> | Iterable<string>,
  removedRows: RowBitmap,
  signal: AbortSignal | undefined,
): Promise<Pick<RemoveSummary, 'removed' | 'unknownIds' | 'unknownExamples'>> {
  const files: { firstRow: number; file: PassageFile }[] = [];
  let [removed, unknownIds, looked] = [0, 0, 0];
  const unknownExamples: string[] = [];
  try {
    for (const { path, firstRow } of passages) files.push({ firstRow, file: new PassageFile(path) });
    for await (const id of ids) {
      if (++looked % LOOK_EVERY === 0) throwIfCancelled(signal);
      let isKnown = false;
      for (const { firstRow, file } of files) {
        for (const row of file.find('id', id, Number.MAX_SAFE_INTEGER)) {
          if (removedRows.has(firstRow + row)) continue;
          removedRows.add(firstRow + row);
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
