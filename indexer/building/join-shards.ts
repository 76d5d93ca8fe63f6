import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { shardFields } from '../../src/index/manifest/generation.ts';
import { INDEX_MANIFEST_VERSIONS, type IndexManifest, versionFor } from '../../src/index/manifest/index-manifest.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import { writeIndexManifest } from '../../src/index/manifest/write-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { removeLockFiles } from './build-lock.ts';
import { columnRecords } from './build-settings.ts';
import { removeBuildRecords } from './complete-shard.ts';
import { type FinishedShard, finishedShards } from './finished-shards.ts';

/**
 * Joins the shards in a folder to an index by writing its manifest. Does not move or copy vectors or passages.
 *
 * @throws TrawlError SHARDS_INCOMPLETE, SHARDS_DIFFER, CORPUS_EMPTY, CORPUS_DUPLICATE_ID, CANCELLED; errors of the shards'
 * files.
 */
export async function joinShards(
  folder: string,
  { uniqueIds, modelLocation, signal }: { uniqueIds: boolean; modelLocation?: string; signal?: AbortSignal },
): Promise<{ manifest: IndexManifest; duplicates: Duplicates; passagesWithoutId: number }> {
  const shards = finishedShards(folder);
  const passageFiles = shards.map(({ name, manifest }) => join(folder, name, manifest.passages.path));
  const duplicates = uniqueIds ? checkedDuplicates(passageFiles, { signal }) : duplicateIds(passageFiles, { signal });
  const manifest = indexManifest(shards, duplicates.count, modelLocation);
  if (manifest.rows === 0) throw emptyCorpus();
  await writeIndexManifest(folder, manifest);
  for (const { name } of shards) {
    // A process killed right after it completed the shard leaves these files.
    await removeBuildRecords(join(folder, name));
    removeLockFiles(join(folder, name));
  }
  openIndexDirectory(folder);
  return { manifest, duplicates, passagesWithoutId: passageFiles.reduce((sum, path) => sum + withoutId(path), 0) };
}

export function emptyCorpus(): TrawlError {
  return new TrawlError('CORPUS_EMPTY', 'The corpus has no passages. Check the corpus files and the skipped lines.');
}

/** The repeated ids of passages: none. @throws TrawlError CORPUS_DUPLICATE_ID if there are any; CANCELLED. */
export function checkedDuplicates(...passages: Parameters<typeof duplicateIds>): Duplicates {
  const duplicates = duplicateIds(...passages);
  if (duplicates.count === 0) return duplicates;
  const { count, examples } = duplicates;
  const lines = examples.map(({ id, lines }) => `${JSON.stringify(id)} on lines ${lines.join(', ')}`);
  throw new TrawlError(
    'CORPUS_DUPLICATE_ID',
    `${count} passages have the id of an earlier passage: ${lines.join('; ')}. Make the ids unique, or leave out --unique-ids.`,
    { details: { count } },
  );
}

function withoutId(path: string): number {
  const file = new PassageFile(path, { mapped: false });
  try {
    return file.rows - file.rowsWithId();
  } finally {
    file.close();
  }
}

function indexManifest(
  shards: readonly FinishedShard[],
  duplicates: number,
  modelLocation = shards[0]!.manifest.input?.modelLocation,
): IndexManifest {
  const { dimension, metric, model, bm25, columns } = shards[0]!.manifest;
  const {
    generation,
    rows,
    shards: entries,
  } = shardFields(
    shards.map(({ name, manifest }) => ({ path: name, rows: manifest.rows, generation: manifest.generation })),
  );
  return {
    format: 'trawl-index',
    version: INDEX_MANIFEST_VERSIONS[versionFor(model)],
    generation,
    rows,
    dimension,
    metric,
    model,
    modelLocation,
    corpus: joinedCorpus(
      shards.map(({ manifest }) => manifest.corpus),
      duplicates,
    ),
    shards: entries,
    tombstones: null,
    bm25: bm25 === undefined ? undefined : { made: bm25.made, deleted: null },
    columns: columns === undefined ? undefined : columnRecords(columns),
    writer: `trawl ${packageVersion}`,
  };
}

function joinedCorpus(records: readonly CorpusRecord[], duplicateIds: number): CorpusRecord {
  const total = (count: (record: CorpusRecord) => number): number =>
    records.reduce((sum, record) => sum + count(record), 0);
  return {
    files: records[0]!.files.map((file, i) => ({ ...file, passages: total(({ files }) => files[i]!.passages) })),
    skippedLines: total(({ skippedLines }) => skippedLines),
    duplicateIds,
    truncatedPassages: total(({ truncatedPassages }) => truncatedPassages),
    passageTemplate: records[0]!.passageTemplate,
  };
}
