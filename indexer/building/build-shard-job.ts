import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { lacksTitles, noTitlesInShard } from '../lexical/check-titles.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { type PrecomputedVectors, vectorsInput } from '../vectors/precomputed-vectors.ts';
import { type Build, type BuildOptions, resolveBuild, scanFiles, type WorkSummary } from './build.ts';
import { lockBuild, removeWorkingFiles } from './build-lock.ts';
import {
  buildDiffers,
  buildRecord,
  claimFolder,
  fieldsDiffer,
  settingsDiffer,
  settingsOfInput,
  settingsOfShard,
} from './build-settings.ts';
import { buildShards, plannedShards } from './build-shards.ts';
import { repeatedIds } from './join-shards.ts';
import { keepOnFailure, type WorkFolder } from './keep-on-failure.ts';
import { OutputFolder } from './output-folder.ts';
import { isComplete, type PlannedShard, type ShardInput, type StoredShard } from './planned-shard.ts';
import { fileRecords } from './store-passages.ts';

/** The shard that a job builds: its number from 0, and the number of shards of the index. */
export interface JobShard {
  readonly index: number;
  readonly of: number;
}

export interface JobSummary extends WorkSummary {
  readonly manifest: ShardManifest;
  readonly wasComplete: boolean;
  /** Complete shards of the index in its folder on this machine. */
  readonly complete: number;
  readonly shards: number;
}

/**
 * Builds one shard of an index that several jobs build. Each job reads the whole corpus for its checksum and stores its own
 * part. `joinShards` then joins the shards into an index.
 *
 * @throws TrawlError as `buildIndex`.
 */
export async function buildShardJob(options: BuildOptions & { readonly shard: JobShard }): Promise<JobSummary> {
  const { index, of: shards } = options.shard;
  const build = resolveBuild(options);
  const { vectors, restart, clock } = build;
  const output = await OutputFolder.prepare(build, 'shared');
  const job = await prepareJob(output, index);
  return keepOnFailure(job, async () => {
    const scan = await scanFiles(build);
    if (scan === undefined) {
      throw new TrawlError('USAGE', 'A corpus from a pipe cannot be divided into shards. Write it to a file.');
    }
    if (vectors !== undefined) checkEveryLine(vectors, scan.positions);
    const planned = plannedShards(build, output.folder, shards, scan);
    // The manifest names the vector files, because shards with different ones must not be joined.
    const input = { ...planned[index]!.input!, vectors: vectors && vectorsInput(vectors) };
    const place = { ...planned[index]!, input };
    const wasComplete = isComplete(place) && !restart;
    let made: Omit<JobSummary, 'folder' | 'complete' | 'shards' | 'wasComplete' | 'stageMs'>;
    if (wasComplete) {
      const manifest = readShardManifest(job.folder);
      checkSameShard(manifest, build, scan, place);
      made = { manifest, tokens: 0, resumedRows: manifest.rows, skippedExamples: [], passagesWithoutId: 0 };
    } else {
      await claimFolder(job.folder, buildRecord(build, shards, scan), restart);
      const plan = { scan, places: [place], shards, firstRow: place.first };
      const check = ([shard]: readonly StoredShard[]): Promise<void> => checkPassages(build, shard!, scan);
      const { manifests, rows: _, ...counts } = await buildShards(build, job, plan, check);
      made = { manifest: manifests[0]!, ...counts };
    }
    job.finish();
    const complete = planned.filter(isComplete).length;
    return { folder: job.folder, complete, shards, wasComplete, ...made, stageMs: clock.stop() };
  });
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(build: Build, shard: StoredShard, { positions }: CorpusScan): Promise<void> {
  const { vectors, signal } = build;
  const files = [join(shard.folder, PASSAGES_FILE)];
  if (lacksTitles(build.bm25, files, signal)) build.onNote(noTitlesInShard(shard.folder));
  if (build.uniqueIds) repeatedIds(files, true, { signal });
  if (vectors === undefined) return;
  const linesWithoutPassage = shard.end - shard.first - shard.rows;
  checkEveryLine(vectors, positions - linesWithoutPassage);
  await checkVectors(vectorsOfShard(vectors, shard), [{ ...shard, firstRow: 0 }], build);
}

/** A job knows only its own passages. It can find its first vector only if every line of the corpus is a passage. */
function checkEveryLine(vectors: PrecomputedVectors, lines: number): void {
  if (vectors.set.rows === lines) return;
  throw new TrawlError(
    'VECTORS_MISMATCH',
    `${vectors.set.rows} vectors for ${lines} lines of the corpus. With --shard, every line must be a passage (no header, ` +
      'blank or skipped lines). If the corpus has such lines, leave out --shard; otherwise name the corpus that the vectors ' +
      'were made from.',
  );
}

function vectorsOfShard(vectors: PrecomputedVectors, { first, end }: PlannedShard): PrecomputedVectors {
  const { set } = vectors;
  const segments = cutSegments(set, first, end - first);
  return { ...vectors, set: { ...set, segments, rows: end - first, ids: set.ids?.slice(first, end) } };
}

/** @throws TrawlError BUILD_DIFFERS if the complete shard was built with other settings. */
function checkSameShard(
  shard: ShardManifest,
  { space, passageTemplate, bm25, columns }: Build,
  scan: CorpusScan,
  { folder, input }: PlannedShard,
): void {
  const model = space?.model ?? null;
  const wanted = { model, passageTemplate, corpus: fileRecords(scan), bm25, columns, ...settingsOfInput(input) };
  const part = (of: ShardInput | undefined): object => ({ first: of?.first, end: of?.end });
  const differences = [
    ...settingsDiffer(settingsOfShard(shard), wanted),
    ...fieldsDiffer('part', part(shard.input), part(input)),
  ];
  if (differences.length > 0) throw buildDiffers(folder, differences);
}

/**
 * The folder of a shard that a job builds. The jobs of an index share the lock of `<out>.partial`.
 *
 * @throws TrawlError BUILD_DIFFERS if the output folder has a build without --shard; BUILD_LOCKED, OUTPUT_NOT_WRITABLE.
 */
async function prepareJob(output: OutputFolder, index: number): Promise<WorkFolder & { finish(): void }> {
  const folder = join(output.folder, shardFolderName(index));
  let lock: FileLock;
  try {
    if (existsSync(join(output.folder, BUILD_FILE))) {
      throw buildDiffers(output.folder, ['it is a build without --shard']);
    }
    await mkdir(folder, { recursive: true });
    lock = lockBuild(folder, 'exclusive');
  } catch (error) {
    output.release();
    throw writeFailure(error, output.final);
  }
  const release = (): void => {
    lock.release();
    output.release();
  };
  return {
    folder,
    final: output.final,
    release,
    /** Removes the build's working files from the folder of the complete shard and unlocks it. */
    finish() {
      removeWorkingFiles(folder);
      release();
    },
    async discard() {
      await rm(folder, { recursive: true, force: true });
      lock.release();
      await output.discardIfEmpty();
    },
  };
}
