import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { type IndexManifest, shardFields } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { type CorpusRecord, manifestVersion } from '../../src/index/manifest/schemas.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';
import { writeIndexManifest } from '../../src/index/manifest/write-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { isShardFolder, shardFolderName } from '../index-files.ts';
import { removeShardWorkingFiles } from './build-lock.ts';
import { checkSameSettings, columnRecords, type FinishedShard } from './build-settings.ts';

/**
 * Joins the shards in a folder into an index by writing the manifest of the index. Does not move or copy vectors or passages.
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
  const duplicates = repeatedIds(passageFiles, uniqueIds, { signal });
  const manifest = indexManifest(shards, duplicates.count, modelLocation);
  if (manifest.rows === 0) throw emptyCorpus();
  await writeIndexManifest(folder, manifest);
  for (const { name } of shards) removeShardWorkingFiles(join(folder, name));
  openIndexDirectory(folder);
  return { manifest, duplicates, passagesWithoutId: passageFiles.reduce((sum, path) => sum + withoutId(path), 0) };
}

export function emptyCorpus(): TrawlError {
  return new TrawlError('CORPUS_EMPTY', 'The corpus has no passages. Check the corpus files and the skipped lines.');
}

/** The repeated ids of passages. @throws TrawlError CORPUS_DUPLICATE_ID with `uniqueIds` if there are any; CANCELLED. */
export function repeatedIds(
  passageFiles: readonly string[],
  uniqueIds: boolean,
  options: Parameters<typeof duplicateIds>[1],
): Duplicates {
  const duplicates = duplicateIds(passageFiles, options);
  const { count, examples } = duplicates;
  if (count === 0 || !uniqueIds) return duplicates;
  const lines = examples.map(({ id, lines }) => `${JSON.stringify(id)} on lines ${lines.join(', ')}`);
  throw new TrawlError(
    'CORPUS_DUPLICATE_ID',
    `${count} passages have the id of an earlier passage: ${lines.join('; ')}. Make the ids unique, or leave out --unique-ids.`,
    { details: { count } },
  );
}

function withoutId(path: string): number {
  const file = new PassageFile(path);
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
  const corpus = joinedCorpus(
    shards.map((shard) => shard.manifest.corpus),
    duplicates,
  );
  const fields = shardFields(
    shards.map(({ name, manifest: { rows, generation } }) => ({ path: name, rows, generation })),
  );
  return {
    format: 'trawl-index',
    version: manifestVersion(model),
    generation: fields.generation,
    rows: fields.rows,
    dimension,
    metric,
    model,
    modelLocation,
    corpus,
    shards: fields.shards,
    tombstones: null,
    bm25: bm25 && { made: bm25.made, deleted: null },
    columns: columns && columnRecords(columns),
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

const LISTED = 10;

/**
 * The shards of an index in corpus order. They must have been built with the same settings and together contain each input
 * position once.
 *
 * @throws TrawlError SHARDS_INCOMPLETE, SHARDS_DIFFER; errors of the shards' manifests.
 */
function finishedShards(folder: string): FinishedShard[] {
  const shards = readShards(folder);
  const [first, ...others] = shards;
  // A single shard needs no input record, and one from a pipe has none.
  if (others.length === 0 && first!.manifest.input === undefined) return [first!];
  const unplaced = shards.find(({ manifest }) => manifest.input === undefined);
  if (unplaced !== undefined) {
    throw new TrawlError(
      'SHARDS_DIFFER',
      `${join(folder, unplaced.name)} cannot be merged: its manifest does not say which part of the corpus it contains, because ` +
        'the corpus came from a pipe. Build it again from files.',
    );
  }
  for (const other of others) checkSameSettings(folder, first!, other);
  const ordered = shards.toSorted((a, b) => {
    const [x, y] = [a.manifest.input!, b.manifest.input!];
    return x.first - y.first || x.end - y.end || (a.name < b.name ? -1 : 1);
  });
  checkRanges(folder, ordered);
  return ordered;
}

/** @throws TrawlError SHARDS_INCOMPLETE if one is unfinished. */
function readShards(folder: string): FinishedShard[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isShardFolder(entry.name))
    .map(({ name }) => name)
    .sort();
  if (names.length === 0) throw incomplete(folder, 'it has no shards');
  const unfinished = names.filter((name) => !existsSync(join(folder, name, SHARD_MANIFEST_FILE)));
  if (unfinished.length > 0) {
    throw incomplete(folder, `${listed(unfinished)} unfinished. Run the same job again to resume it`);
  }
  return names.map((name) => ({ name, manifest: readShardManifest(join(folder, name)) }));
}

/** Every input position must be in one shard. With more shards than positions, some shards are empty. */
function checkRanges(folder: string, ordered: readonly FinishedShard[]): void {
  const { positions, shards } = ordered[0]!.manifest.input!;
  let end = 0;
  let before = '';
  for (const { name, manifest } of ordered) {
    const input = manifest.input!;
    if (input.first > end) throw incomplete(folder, missingShards(folder, ordered, end, input.first));
    if (input.first < end) {
      const lines = `lines ${input.first + 1} to ${Math.min(end, input.end)} of the corpus`;
      throw incomplete(folder, `${before} and ${name} both contain ${lines}. Move one of them away`);
    }
    end = input.end;
    before = name;
  }
  if (end < positions || ordered.length < shards) {
    throw incomplete(folder, missingShards(folder, ordered, end, positions));
  }
  if (ordered.length > shards) {
    throw incomplete(folder, `it has ${ordered.length} shards instead of ${shards}. Move the wrong ones away`);
  }
}

function missingShards(folder: string, ordered: readonly FinishedShard[], first: number, end: number): string {
  const { shards } = ordered[0]!.manifest.input!;
  const missing = Array.from({ length: shards }, (_, i) =>
    existsSync(join(folder, shardFolderName(i))) ? [] : [`${i}/${shards}`],
  ).flat();
  return `no shard contains lines ${first + 1} to ${end} of the corpus: ${listed(missing)} missing`;
}

function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).join(', ')}${more} ${names.length === 1 ? 'is' : 'are'}`;
}

function incomplete(folder: string, reason: string): TrawlError {
  return new TrawlError('SHARDS_INCOMPLETE', `${folder}: ${reason}.`, { details: { folder } });
}
