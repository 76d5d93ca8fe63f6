import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { requireFreeBytes } from '../../src/base/system/free-bytes.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { type Build, type BuildOptions, resolveBuild, scanFiles, type WorkSummary } from '../building/build.ts';
import { removeShardWorkingFiles } from '../building/build-lock.ts';
import { corpusDiffers } from '../building/build-settings.ts';
import { buildShards, cutPositions, shardCount } from '../building/build-shards.ts';
import { PLAN_HINT } from '../building/expected-size.ts';
import { emptyCorpus, repeatedIds } from '../building/join-shards.ts';
import { keepOnFailure } from '../building/keep-on-failure.ts';
import { OutputFolder } from '../building/output-folder.ts';
import { type PlannedShard, totalRows } from '../building/planned-shard.ts';
import { fileRecords, firstPositions } from '../building/store-passages.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { replaceLexical } from '../lexical/add-lexical.ts';
import { checkNoBuild, claimUpdate, type UpdateBuild } from './claim-update.ts';
import { type Comparison, compareCorpus, comparisonBytes, saveChanges, savedChanges } from './compare-corpus.ts';
import { isOfOneCorpus, lastReading } from './last-reading.ts';
import { type AddedShard, nextShardNumber, publishGeneration, withNewRows } from './publish-generation.ts';
import { encoderOfIndex } from './update-encoder.ts';

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
  const build = resolveUpdate(options, readIndexManifest(options.out));
  const { type, reading, clock, signal } = build;
  const output = await OutputFolder.prepareChange(options.out);
  return keepOnFailure(output, async () => {
    checkNoBuild(output);
    const scan = await scanFiles(build);
    if (scan === undefined) throw pipedCorpus();
    // `OutputFolder.prepareChange` took the lock, so no other process changes the index from here on.
    const directory = openIndexDirectory(output.final);
    const { manifest: before, passages } = directory;
    await claimUpdate(output, directory, scan, build);
    if (holdsCorpus(directory, scan, build)) {
      await output.discard();
      return { ...nothingDone(directory), stageMs: clock.stop() };
    }
    clock.start('compare');
    const changes = await changesFor(output, directory, scan, build);
    const { kept, restored, removed, skippedExamples, addedPositions, deletedRows } = changes;
    const places = planShards(addedPositions, build.shardRows, (shard) =>
      join(output.folder, shardFolderName(nextShardNumber(before) + shard)),
    );
    const added = totalRows(places);
    if (kept + added === 0) throw emptyCorpus();
    let duplicates!: Duplicates;
    const plan = { scan, places, shards: places.length, only: addedPositions };
    const {
      tokens,
      resumedRows,
      skippedExamples: newlySkipped,
    } = await buildShards(build, output, plan, () => {
      const files = [...passages.map(({ path }) => path), ...places.map(({ folder }) => join(folder, PASSAGES_FILE))];
      const liveRows = withNewRows(deletedRows, added).complement();
      duplicates = repeatedIds(files, build.uniqueIds, { liveRows, signal });
    });
    build.onProgress({ stage: 'finish', passages: added, totalPassages: added });
    const newShards = await addedShards(places, before, build);
    const read = withoutRefused(changes, scan, newShards);
    const corpus = corpusRecord(before, scan, read, { type, newShards, duplicateIds: duplicates.count });
    const stored = newShards.reduce((sum, { manifest }) => sum + manifest.rows, 0);
    if (kept + stored === 0) throw emptyCorpus();
    const changed = stored + restored + removed > 0;
    const next = { newShards, deletedRows, corpus, lastUpdate: { kind: type, before: before.generation, reading } };
    const isRecorded = type === 'append' || (wasUpdated(before) && isSameJson(before.corpus, corpus));
    const manifest = changed || !isRecorded ? await publishGeneration(directory, output.folder, next) : before;
    await output.discard();
    return {
      folder: output.final,
      manifest,
      changed,
      kept,
      restored,
      added: stored,
      removed,
      duplicates,
      tokens,
      resumedRows,
      skippedExamples: [...new Set([...skippedExamples, ...newlySkipped])].slice(0, MAX_EXAMPLES),
      stageMs: clock.stop(),
    };
  });
}

/**
 * The build of the new shards.
 *
 * @throws TrawlError MODEL_MISMATCH.
 */
export function resolveUpdate(options: UpdateOptions, manifest: IndexManifest): UpdateBuild {
  const { model, metric, corpus, bm25, columns } = manifest;
  const build = resolveBuild({
    ...options,
    encoder: encoderOfIndex(model, options.encoder),
    metric: metric ?? undefined,
    bm25: bm25?.made,
    columns,
    passageTemplate: corpus.passageTemplate,
  });
  return { ...build, type: options.type };
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

/** Whether the index has exactly this corpus according to its manifest, so that no passages need to be compared. */
function holdsCorpus(
  { manifest, shards }: IndexDirectory,
  scan: CorpusScan,
  { type, reading, uniqueIds }: UpdateBuild,
): boolean {
  const { corpus } = manifest;
  return (
    type === 'update' &&
    !(uniqueIds && corpus.duplicateIds > 0) &&
    isOfOneCorpus(manifest) &&
    isSameJson(lastReading(manifest, shards[0]?.manifest), reading) &&
    corpusDiffers(corpus.files, fileRecords(scan)).length === 0
  );
}

/** A new shard: the part of the corpus from its first to its last new passage, and the number of new passages. */
type UpdateShard = PlannedShard & { readonly rows: number };

/** Distributes the new passages evenly over the smallest number of shards with at most `shardRows` rows. */
export function planShards(
  added: RowBitmap,
  shardRows: number,
  folderOf: (shard: number) => string,
): readonly UpdateShard[] {
  const size = added.count();
  if (size === 0) return [];
  const cuts = cutPositions(size, shardCount(size, shardRows));
  const places: UpdateShard[] = [];
  let [passage, begin] = [0, 0];
  for (const position of added) {
    const { first, end } = cuts[places.length]!;
    if (passage === first) begin = position;
    if (++passage < end) continue;
    const index = places.length;
    places.push({ index, folder: folderOf(index), first: begin, end: position + 1, rows: end - first });
  }
  return places;
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
  // What a killed process left.
  await rm(scratch, { recursive: true, force: true });
  const what = 'the files of the comparison with the corpus';
  await requireFreeBytes({ path: output.final, disk: output.folder, bytes, what, hint: PLAN_HINT });
  const changes = await compareCorpus(directory, scan, build, scratch);
  await saveChanges(output.folder, changes);
  return changes;
}

/** The new shards, with the inverted indexes that the index has now. */
async function addedShards(
  places: readonly UpdateShard[],
  { bm25 }: IndexManifest,
  { kernel, signal }: Build,
): Promise<AddedShard[]> {
  const shards: AddedShard[] = [];
  for (const { folder } of places) {
    removeShardWorkingFiles(folder);
    const shard = { folder, manifest: readShardManifest(folder) };
    // The settings of the inverted indexes may have changed since an earlier run of this update completed the shard.
    const manifest = bm25 === undefined ? shard.manifest : await replaceLexical(shard, bm25.made, kernel, { signal });
    if (manifest.rows > 0) shards.push({ name: basename(folder), manifest });
  }
  return shards;
}

/** What was read, with the new passages that the encoder refused among the skipped lines. */
function withoutRefused(changes: Comparison, scan: CorpusScan, newShards: readonly AddedShard[]): Comparison {
  const starts = firstPositions(scan);
  const refused = scan.files.map((_, i) => {
    const planned = changes.addedPositions.countIn(starts[i]!, starts[i + 1]!);
    return newShards.reduce((rest, { manifest }) => rest - manifest.corpus.files[i]!.passages, planned);
  });
  const passagesByFile = changes.passagesByFile.map((passages, i) => passages - refused[i]!);
  const skippedLines = refused.reduce((sum, count) => sum + count, changes.skippedLines);
  return { ...changes, passagesByFile, skippedLines };
}

/** Whether the last change was a build or an update. After an append or a deletion, the manifest names no corpus that the index has. */
function wasUpdated({ lastUpdate }: IndexManifest): boolean {
  return lastUpdate === undefined || lastUpdate.kind === 'update';
}

function corpusRecord(
  { corpus: before }: IndexManifest,
  scan: CorpusScan,
  changes: Comparison,
  { type, newShards, duplicateIds }: { type: UpdateType; newShards: readonly AddedShard[]; duplicateIds: number },
): CorpusRecord {
  const files = fileRecords(scan).map((file, i) => ({ ...file, passages: changes.passagesByFile[i] ?? 0 }));
  const isKnown = (file: (typeof files)[number]): boolean => before.files.some((known) => isSameJson(known, file));
  return {
    files: type === 'update' ? files : [...before.files, ...files.filter((file) => !isKnown(file))],
    skippedLines: changes.skippedLines + (type === 'update' ? 0 : before.skippedLines),
    duplicateIds,
    truncatedPassages: newShards.reduce(
      (sum, { manifest }) => sum + manifest.corpus.truncatedPassages,
      before.truncatedPassages,
    ),
    passageTemplate: before.passageTemplate,
  };
}
