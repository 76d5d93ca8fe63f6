import { existsSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/errors.ts';
import type { UpdateKind } from '../../src/manifest/build-records.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { beginBuild } from '../build/begin-build.ts';
import { failedBuild } from '../build/build-failure.ts';
import type { BuildOptions, WorkSummary } from '../build/build-options.ts';
import { readingRecord } from '../build/build-settings.ts';
import { emptyCorpus, repeatedIds } from '../build/join-shards.ts';
import { OutputFolder } from '../build/output-folder.ts';
import { DEFAULT_SHARD_ROWS } from '../build/shard-cut.ts';
import { removeNotes } from '../build/shard-manifest.ts';
import { checkRoomForVectors, refuseWithoutRoom } from '../disk-room.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { checkNoBuild, claimUpdate } from './claim-update.ts';
import { type Comparison, compareCorpus, comparisonBytes } from './compare-corpus.ts';
import { saveChanges, savedChanges } from './index-changes.ts';
import {
  type AddedShard,
  type NextGeneration,
  nextShardNumber,
  publishGeneration,
  withNewRows,
} from './publish-generation.ts';
import { encoderOfIndex } from './update-encoder.ts';
import { checkRoomForPassages, placesOf } from './update-places.ts';
import { corpusRecord, holdsCorpus, saysMore } from './updated-corpus.ts';

/** As for a build; metric and template are the index's, `out` the index. */
export interface UpdateOptions
  extends Omit<BuildOptions, 'overwrite' | 'passageTemplate' | 'metric' | 'vectors' | 'modelFolder'> {
  readonly kind: UpdateKind;
}

export interface UpdateSummary extends Omit<WorkSummary, 'passagesWithoutId'> {
  readonly manifest: IndexManifest;
  /** False where the index held the corpus already. */
  readonly changed: boolean;
  /** Passages of the corpus that were there, of these those that had been removed before, and those that are new. */
  readonly kept: number;
  readonly restored: number;
  readonly added: number;
  /** Passages that were removed. */
  readonly removed: number;
  readonly duplicates: Duplicates;
}

/**
 * Makes an index hold a corpus (`update`), or hold it too (`append`), by embedding only the passages that it lacks: they
 * become new shards, and what the corpus does not have any more is marked as removed. Row numbers stay. The index is the
 * old one until the last moment; an update that was stopped or killed is gone on with by calling this again.
 *
 * @throws TrawlError INDEX_NOT_FOUND, MODEL_MISMATCH, BUILD_DIFFERS when something else was begun there, BUILD_LOCKED while
 * another process is at work there, USAGE for a corpus that comes through a pipe; DISK_FULL, OUTPUT_NOT_WRITABLE; errors of
 * the index's files, of corpus, template and encoder.
 */
export async function updateIndex(options: UpdateOptions): Promise<UpdateSummary> {
  const { model, metric, corpus } = readIndexManifest(options.out);
  const build: BuildOptions = {
    ...options,
    overwrite: true,
    encoder: encoderOfIndex(model, options.encoder),
    metric,
    passageTemplate: corpus.passageTemplate,
  };
  const begun = beginBuild(build);
  // Of a link, what it points at: shards are moved in, which works within one disk.
  const output = await OutputFolder.prepare(realpathSync(options.out), true);
  try {
    checkNoBuild(output);
    const scan = await begun.scan();
    if (scan === undefined) throw pipedCorpus();
    // Only now that nobody changes it any more.
    const directory = openIndexDirectory(output.final);
    const before = directory.manifest;
    const shardRows = options.shardRows ?? DEFAULT_SHARD_ROWS;
    await claimUpdate(output, directory, scan, { ...options, shardRows });
    if (holdsCorpus(directory, scan, options)) {
      await output.discard();
      begun.times.stop();
      return {
        ...NOTHING_DONE,
        folder: output.final,
        manifest: before,
        kept: before.rows - (before.tombstones?.rows ?? 0),
        stageMs: begun.times.stages,
      };
    }
    begun.times.start('compare');
    const changes = await changesFor(output, directory, scan, options);
    const added = changes.addedPositions.count();
    if (changes.kept + added === 0) throw emptyCorpus();
    const places = placesOf(changes.addedPositions, shardRows, (shard) =>
      join(output.partial, shardFolderName(nextShardNumber(before) + shard)),
    );
    const open = places.filter(({ folder }) => !existsSync(join(folder, SHARD_MANIFEST_FILE)));
    const rowsOpen = open.reduce((sum, { rows }) => sum + rows, 0);
    await checkRoomForPassages(output, build, scan, open);
    const passages = await begun.read(open, scan, changes.addedPositions);
    const duplicates = duplicateIds(
      [...directory.passages.map(({ path }) => path), ...places.map(({ folder }) => join(folder, PASSAGES_FILE))],
      { alive: withNewRows(changes.removedRows, added).complement(), signal: options.signal },
    );
    if (options.uniqueIds && duplicates.count > 0) throw repeatedIds(duplicates);
    await checkRoomForVectors(output, build, open, rowsOpen);
    const rowsDone = added - rowsOpen;
    const built = await begun.encode(open, {
      scan,
      corpus: passages,
      rows: added,
      rowsDone,
      shards: places.length,
      isPart: true,
      firstRows: new Map(),
    });
    begun.times.start('finish');
    options.onProgress({ stage: 'finish', passages: added, totalPassages: added });
    // Left by a process that ended between its shard's last step and clearing up.
    for (const { folder } of places) await removeNotes(folder);
    const shards = places.map(
      ({ folder }): AddedShard => ({ name: basename(folder), manifest: readShardManifest(folder) }),
    );
    const next: NextGeneration = {
      shards,
      removedRows: changes.removedRows,
      corpus: corpusRecord(before, scan, changes, { kind: options.kind, shards, duplicateIds: duplicates.count }),
      lastUpdate: {
        kind: options.kind,
        before: before.generation,
        reading: readingRecord(options.corpusOptions),
      },
    };
    const changed = added + changes.restored + changes.removed > 0;
    const manifest =
      changed || saysMore(before, next) ? await publishGeneration(directory, output.partial, next) : before;
    await output.discard();
    begun.times.stop();
    return {
      folder: output.final,
      manifest,
      changed,
      kept: changes.kept,
      restored: changes.restored,
      added,
      removed: changes.removed,
      duplicates,
      tokens: built.reduce((sum, { tokens }) => sum + tokens, 0),
      resumedRows: built.reduce((sum, { resumedRows }) => sum + resumedRows, rowsDone),
      skippedExamples: changes.skippedExamples,
      stageMs: begun.times.stages,
    };
  } catch (error) {
    throw await failedBuild(error, {
      folder: output.partial,
      final: output.final,
      keep: () => output.release(),
      discard: () => output.discard(),
    });
  }
}

const NOTHING_DONE = {
  changed: false,
  restored: 0,
  added: 0,
  removed: 0,
  duplicates: { count: 0, examples: [] },
  tokens: 0,
  resumedRows: 0,
  skippedExamples: [],
} as const;

async function changesFor(
  output: OutputFolder,
  directory: IndexDirectory,
  scan: CorpusScan,
  options: UpdateOptions,
): Promise<Comparison> {
  const saved = savedChanges(output.partial, directory.source.rows, scan.positions);
  if (saved !== undefined) return saved;
  const scratch = join(output.partial, 'compare');
  const bytes = comparisonBytes(directory.source.rows, scan.positions);
  await refuseWithoutRoom(output, [{ folder: scratch }], bytes, 'the comparison with the corpus');
  const changes = await compareCorpus(directory, scan, { ...options, scratch });
  await saveChanges(output.partial, changes);
  return changes;
}

export function pipedCorpus(): TrawlError {
  return new TrawlError(
    'USAGE',
    'An index cannot be updated from a pipe: the corpus is read twice. Write it to a file.',
  );
}
