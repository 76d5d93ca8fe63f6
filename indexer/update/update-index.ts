import { basename, join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { Build, type BuildOptions, scanFiles, type WorkSummary } from '../building/build.ts';
import { buildShards } from '../building/build-shards.ts';
import { removeBuildRecords } from '../building/complete-shard.ts';
import { checkedDuplicates, emptyCorpus } from '../building/join-shards.ts';
import { keepOnFailure } from '../building/keep-on-failure.ts';
import { OutputFolder } from '../building/output-folder.ts';
import { isComplete, rowsOf } from '../building/planned-shard.ts';
import { storePassages } from '../building/store-passages.ts';
import { checkSpaceForPassages, checkSpaceForVectors, requireSpace } from '../expected-size.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { replaceLexical } from '../lexical/add-lexical.ts';
import { checkNoBuild, claimUpdate } from './claim-update.ts';
import { type Comparison, compareCorpus, comparisonBytes } from './compare-corpus.ts';
import { saveChanges, savedChanges } from './index-changes.ts';
import { type PlannedUpdateShard, planShards } from './plan-shards.ts';
import { type AddedShard, nextShardNumber, publishGeneration, withNewRows } from './publish-generation.ts';
import { encoderOfIndex } from './update-encoder.ts';
import { changesManifest, corpusRecord, holdsCorpus } from './updated-corpus.ts';

/**
 * The options of a build, but `out` is an existing index. Its manifest determines metric, template, BM25 settings and
 * columns. An update does not read vector files.
 */
export interface UpdateOptions
  extends Omit<
    BuildOptions,
    'passageTemplate' | 'metric' | 'bm25' | 'columns' | 'vectors' | 'modelFolder' | 'overwrite'
  > {
  readonly type: UpdateType;
}

/** The build of the new shards. */
type UpdateBuild = Build & Pick<UpdateOptions, 'type'>;

export interface UpdateSummary extends Omit<WorkSummary, 'passagesWithoutId'> {
  readonly manifest: IndexManifest;
  /**
   * Whether rows were added, deleted or made live again. If false, the manifest may still change: it records the corpus files,
   * which may differ although their passages are the same.
   */
  readonly changed: boolean;
  /** Passages of the corpus that already had a row in the index, `restored` included. */
  readonly kept: number;
  /** Passages whose row was deleted and is live again. */
  readonly restored: number;
  /** Passages that the index lacked; the update stored them as new rows. */
  readonly added: number;
  /** Rows deleted by this update. */
  readonly removed: number;
  readonly duplicates: Duplicates;
}

/**
 * Brings an index up to a corpus: embeds passages that the index lacks, into new shards, and (`update`, not `append`) deletes
 * rows whose passages the corpus lacks. Row numbers do not change. The change becomes visible in one step at the end. The
 * same call resumes a stopped or killed update.
 *
 * @throws TrawlError INDEX_NOT_FOUND, MODEL_MISMATCH, BUILD_DIFFERS if other unfinished work is there, BUILD_LOCKED while
 * another process changes the index, USAGE for a corpus from a pipe, DISK_FULL, OUTPUT_NOT_WRITABLE; errors of the index's
 * files, of corpus, template and encoder.
 */
export async function updateIndex(options: UpdateOptions): Promise<UpdateSummary> {
  const build: UpdateBuild = {
    ...new Build(updateBuild(options, readIndexManifest(options.out))),
    type: options.type,
  };
  const output = await OutputFolder.prepareChange(options.out);
  return keepOnFailure(output, async () => {
    checkNoBuild(output);
    const scan = await scanFiles(build);
    if (scan === undefined) throw pipedCorpus();
    // `OutputFolder.prepareChange` took the lock, so no other process changes the index from here on.
    const directory = openIndexDirectory(output.final);
    await claimUpdate(output, directory, scan, build);
    if (holdsCorpus(directory, scan, build)) {
      await output.discard();
      return { ...nothingDone(directory), stageMs: build.clock.stop() };
    }
    build.clock.start('compare');
    const changes = await changesFor(output, directory, scan, build);
    const places = planShards(changes.addedPositions, build.shardRows, (shard) =>
      join(output.folder, shardFolderName(nextShardNumber(directory.manifest) + shard)),
    );
    const added = rowsOf(places);
    if (changes.kept + added === 0) throw emptyCorpus();
    const unfinished = places.filter((place) => !isComplete(place));
    const rowsDone = added - rowsOf(unfinished);
    await checkSpaceForPassages(output, build, scan, unfinished, rowsOf(unfinished));
    const corpusFiles = await storePassages(build, unfinished, scan, changes.addedPositions);
    const duplicates = duplicatesAfter(directory, changes, places, build);
    await checkSpaceForVectors(output, build, unfinished);
    // `firstRow` selects rows of vector files, which an update does not read.
    const shards = unfinished.map((place) => ({ ...place, firstRow: 0 }));
    const { tokens, resumedRows } = await buildShards(build, shards, {
      corpusFiles,
      rows: added,
      rowsDone,
      shards: places.length,
    });
    build.clock.start('finish');
    build.onProgress({ stage: 'finish', passages: added, totalPassages: added });
    const { manifest, changed } = await publish(output, directory, { scan, changes, places, duplicates }, build);
    await output.discard();
    const { kept, restored, deleted: removed, skippedExamples } = changes;
    return {
      folder: output.final,
      manifest,
      changed,
      kept,
      restored,
      added,
      removed,
      duplicates,
      tokens,
      resumedRows,
      skippedExamples,
      stageMs: build.clock.stop(),
    };
  });
}

/**
 * The options for building the new shards.
 *
 * @throws TrawlError MODEL_MISMATCH.
 */
export function updateBuild(
  options: UpdateOptions,
  { model, metric, corpus, bm25, columns }: IndexManifest,
): BuildOptions {
  return {
    ...options,
    encoder: encoderOfIndex(model, options.encoder),
    metric: metric ?? undefined,
    bm25: bm25?.made,
    columns,
    passageTemplate: corpus.passageTemplate,
  };
}

export function pipedCorpus(): TrawlError {
  return new TrawlError(
    'USAGE',
    'An index cannot be updated from a pipe, because the corpus is read twice. Write it to a file.',
  );
}

function nothingDone({ folder, manifest }: IndexDirectory): Omit<UpdateSummary, 'stageMs'> {
  return {
    folder,
    manifest,
    changed: false,
    kept: manifest.rows - (manifest.tombstones?.rows ?? 0),
    restored: 0,
    added: 0,
    removed: 0,
    duplicates: { count: 0, examples: [] },
    tokens: 0,
    resumedRows: 0,
    skippedExamples: [],
  };
}

/** Compares index and corpus and saves the result, or returns the saved result of an earlier run of the same update. */
async function changesFor(
  output: OutputFolder,
  directory: IndexDirectory,
  scan: CorpusScan,
  build: UpdateBuild,
): Promise<Comparison> {
  const saved = savedChanges(output.folder, directory.manifest.rows, scan.positions);
  if (saved !== undefined) return saved;
  const scratch = join(output.folder, 'compare');
  const bytes = comparisonBytes(directory.manifest.rows, scan.positions);
  await requireSpace(output, [{ folder: scratch }], bytes, 'the files of the comparison with the corpus');
  const changes = await compareCorpus(directory, scan, { ...build, scratch });
  await saveChanges(output.folder, changes);
  return changes;
}

/** The repeated ids of the updated index. @throws TrawlError CORPUS_DUPLICATE_ID with `uniqueIds`. */
function duplicatesAfter(
  { passages }: IndexDirectory,
  { deletedRows }: Comparison,
  places: readonly PlannedUpdateShard[],
  { uniqueIds, signal }: Build,
): Duplicates {
  const files = [...passages.map(({ path }) => path), ...places.map(({ folder }) => join(folder, PASSAGES_FILE))];
  const liveRows = withNewRows(deletedRows, rowsOf(places)).complement();
  return uniqueIds ? checkedDuplicates(files, { liveRows, signal }) : duplicateIds(files, { liveRows, signal });
}

interface Updated {
  readonly scan: CorpusScan;
  readonly changes: Comparison;
  readonly places: readonly PlannedUpdateShard[];
  readonly duplicates: Duplicates;
}

/** Moves the new shards into the index and replaces its manifest, if anything changed. */
async function publish(
  output: OutputFolder,
  directory: IndexDirectory,
  { scan, changes, places, duplicates }: Updated,
  { type, reading, kernel, signal }: UpdateBuild,
): Promise<{ manifest: IndexManifest; changed: boolean }> {
  const before = directory.manifest;
  // A process killed right after it completed a shard leaves its build records.
  for (const { folder } of places) await removeBuildRecords(folder);
  const newShards: AddedShard[] = [];
  for (const { folder } of places) {
    const manifest = readShardManifest(folder);
    newShards.push({
      name: basename(folder),
      // The inverted indexes of the index may have other settings than when an earlier run of this update completed the shard.
      manifest:
        before.bm25 === undefined
          ? manifest
          : await replaceLexical({ folder, manifest }, before.bm25.made, kernel, { signal }),
    });
  }
  const next = {
    newShards,
    deletedRows: changes.deletedRows,
    corpus: corpusRecord(before, scan, changes, { type, newShards, duplicateIds: duplicates.count }),
    lastUpdate: { kind: type, before: before.generation, reading },
  };
  const changed = places.length > 0 || changes.restored + changes.deleted > 0;
  if (!changed && !changesManifest(before, next)) return { manifest: before, changed };
  return { manifest: await publishGeneration(directory, output.folder, next), changed };
}
