import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { generationOf } from '../../src/manifest/generation.ts';
import { INDEX_MANIFEST_FILE, INDEX_MANIFEST_VERSION, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readShardManifest } from '../../src/manifest/read-manifest.ts';
import type { CorpusRecord } from '../../src/manifest/schemas.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import { packageVersion } from '../../src/package-root.ts';
import { type Duplicates, duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { removeLockFiles } from './build-lock.ts';
import { corpusDiffers, fieldsDiffer, valuesDiffer, vectorsDiffer } from './build-settings.ts';
import { shardFolderName } from '../index-files.ts';
import { removeNotes } from './shard-manifest.ts';

export interface FinishedShard {
  /** Name of its folder within the index. */
  readonly name: string;
  readonly manifest: ShardManifest;
}

/** Shards listed in a message. */
const LISTED = 10;

/**
 * Makes an index of the shards in a folder by writing its manifest; no vector and no passage is copied. The shards have
 * to be of one corpus, model and set of options, and to hold each input position once.
 *
 * @throws TrawlError SHARDS_INCOMPLETE, SHARDS_DIFFER, CORPUS_EMPTY, CORPUS_DUPLICATE_ID, CANCELLED; errors of reading the
 * shards' files.
 */
export async function joinShards(
  folder: string,
  {
    uniqueIds,
    modelLocation,
    signal,
  }: { uniqueIds: boolean; modelLocation?: string | undefined; signal?: AbortSignal | undefined },
): Promise<{ manifest: IndexManifest; duplicates: Duplicates; passagesWithoutId: number }> {
  const shards = inOrder(folder, finishedShards(folder));
  const passageFiles = shards.map(({ name, manifest }) => join(folder, name, manifest.passages.path));
  const duplicates = duplicateIds(passageFiles, { signal });
  if (uniqueIds && duplicates.count > 0) throw repeatedIds(duplicates);
  const manifest = indexManifest(shards, duplicates.count, modelLocation);
  if (manifest.rows === 0) throw emptyCorpus();
  await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(manifest));
  for (const { name } of shards) {
    // Left by a process that ended between its last step and clearing up.
    await removeNotes(join(folder, name));
    removeLockFiles(join(folder, name));
  }
  openIndexDirectory(folder);
  return { manifest, duplicates, passagesWithoutId: passageFiles.reduce((sum, path) => sum + withoutId(path), 0) };
}

export function emptyCorpus(): TrawlError {
  return new TrawlError(
    'CORPUS_EMPTY',
    'The corpus holds no passage. Look at the files, and at the lines that were skipped.',
  );
}

export function repeatedIds({ count, examples }: Duplicates): TrawlError {
  const lines = examples.map(({ id, lines }) => `${JSON.stringify(id)} on lines ${lines.join(', ')}`);
  return new TrawlError(
    'CORPUS_DUPLICATE_ID',
    `${count} passages have an id that an earlier one has: ${lines.join('; ')}. Make the ids unique, or leave out --unique-ids.`,
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

/** The complete shards in a folder. @throws TrawlError SHARDS_INCOMPLETE where one is begun and not complete. */
function finishedShards(folder: string): FinishedShard[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.startsWith('shard-'))
    .map(({ name }) => name)
    .sort();
  if (names.length === 0) throw incomplete(folder, 'there is no shard');
  const unfinished = names.filter((name) => !existsSync(join(folder, name, SHARD_MANIFEST_FILE)));
  if (unfinished.length > 0) {
    throw incomplete(folder, `${listed(unfinished)} not finished; run the same job again and it goes on`);
  }
  return names.map((name) => ({ name, manifest: readShardManifest(join(folder, name)) }));
}

/** By input position, after all comparisons. */
function inOrder(folder: string, shards: readonly FinishedShard[]): FinishedShard[] {
  const [first, ...others] = shards;
  // A shard alone needs no place among others; those of earlier programs have none.
  if (others.length === 0 && first!.manifest.input === undefined) return [first!];
  for (const { name, manifest } of shards) {
    if (manifest.input === undefined) {
      throw new TrawlError(
        'SHARDS_DIFFER',
        `${join(folder, name)}: does not say which part of the corpus it was made from (it came through a pipe, or an ` +
          'earlier program made it), so it cannot be joined with others. Build it again from files.',
      );
    }
  }
  for (const { name, manifest } of others) checkAlike(folder, first!, { name, manifest });
  const ordered = shards.toSorted((a, b) => {
    const [x, y] = [a.manifest.input!, b.manifest.input!];
    return x.first - y.first || x.end - y.end || (a.name < b.name ? -1 : 1);
  });
  checkRanges(folder, ordered);
  return ordered;
}

function checkAlike(folder: string, first: FinishedShard, other: FinishedShard): void {
  const [a, b] = [first.manifest, other.manifest];
  const differences = [
    ...fieldsDiffer('model', a.model, b.model),
    ...valuesDiffer('passage template', a.corpus.passageTemplate, b.corpus.passageTemplate),
    ...fieldsDiffer('option', a.input!.reading, b.input!.reading),
    ...vectorsDiffer(a.input!.vectors, b.input!.vectors),
    ...valuesDiffer('number of shards', a.input!.shards, b.input!.shards),
    ...corpusDiffers(a.corpus.files, b.corpus.files),
    ...valuesDiffer('lines of the corpus', a.input!.positions, b.input!.positions),
  ];
  if (differences.length === 0) return;
  throw new TrawlError(
    'SHARDS_DIFFER',
    `${join(folder, other.name)} does not belong with ${first.name}: ${differences.join('; ')}. Move the wrong one ` +
      'away, or build it again with the settings of the others.',
    { details: { shard: other.name, differences } },
  );
}

/** Every input position in one shard. */
function checkRanges(folder: string, ordered: readonly FinishedShard[]): void {
  const { positions, shards } = ordered[0]!.manifest.input!;
  let end = 0;
  let before = '';
  // Of a corpus with fewer lines than shards some are empty, at the same place as others.
  for (const { name, manifest } of ordered) {
    const input = manifest.input!;
    if (input.first > end) throw incomplete(folder, missingShards(folder, ordered, end, input.first));
    if (input.first < end) {
      throw incomplete(
        folder,
        `${before} and ${name} both hold lines ${input.first + 1} to ${Math.min(end, input.end)} of the corpus; move one away`,
      );
    }
    end = input.end;
    before = name;
  }
  if (end < positions || ordered.length < shards) {
    throw incomplete(folder, missingShards(folder, ordered, end, positions));
  }
  if (ordered.length > shards) {
    throw incomplete(
      folder,
      `there are ${ordered.length} shards where ${shards} make the whole; move the wrong ones away`,
    );
  }
}

function missingShards(folder: string, ordered: readonly FinishedShard[], first: number, end: number): string {
  const { shards } = ordered[0]!.manifest.input!;
  const missing = Array.from({ length: shards }, (_, i) => i).filter(
    (i) => !existsSync(join(folder, shardFolderName(i))),
  );
  return `lines ${first + 1} to ${end} of the corpus are in no shard: ${listed(missing.map((i) => `${i}/${shards}`))} missing`;
}

function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).join(', ')}${more} ${names.length === 1 ? 'is' : 'are'}`;
}

function incomplete(folder: string, reason: string): TrawlError {
  return new TrawlError('SHARDS_INCOMPLETE', `${folder}: ${reason}.`, { details: { folder } });
}

function indexManifest(
  shards: readonly FinishedShard[],
  duplicates: number,
  modelLocation = shards[0]!.manifest.input?.modelLocation,
): IndexManifest {
  const { dimension, metric, model } = shards[0]!.manifest;
  let rows = 0;
  const entries = shards.map(({ name, manifest }) => {
    const entry = { path: name, firstRow: rows, rows: manifest.rows, generation: manifest.generation };
    rows += manifest.rows;
    return entry;
  });
  return {
    format: 'trawl-index',
    version: INDEX_MANIFEST_VERSION,
    generation: generationOf(['index', ...shards.map(({ manifest }) => manifest.generation)]),
    rows,
    dimension,
    metric,
    model,
    ...(modelLocation === undefined ? {} : { modelLocation }),
    corpus: joinedCorpus(
      shards.map(({ manifest }) => manifest.corpus),
      duplicates,
    ),
    shards: entries,
    tombstones: null,
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
