import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { checkSpaceForPassages, checkSpaceForVectors } from '../expected-size.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { lacksTitles, noTitles } from '../lexical/check-titles.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { checkRows } from '../vectors/precomputed-vectors.ts';
import { Build, type BuildOptions, scanFiles, type WorkSummary } from './build.ts';
import { buildDiffers, buildRecord, claimFolder } from './build-settings.ts';
import { buildShards } from './build-shards.ts';
import { checkedDuplicates, emptyCorpus, joinShards } from './join-shards.ts';
import { keepOnFailure } from './keep-on-failure.ts';
import { OutputFolder } from './output-folder.ts';
import {
  cutPositions,
  isComplete,
  type PlannedShard,
  rowsOf,
  type StoredShard,
  shardCount,
  shardInput,
  storedPassages,
  storedShards,
} from './planned-shard.ts';
import { storePassages } from './store-passages.ts';

export interface BuildSummary extends WorkSummary {
  readonly manifest: IndexManifest;
  readonly duplicates: Duplicates;
}

/**
 * Builds an index from a corpus. `out` exists only once the index is complete. A stopped or killed build resumes at its last
 * checkpoint and produces the same index as an uninterrupted one.
 *
 * @throws TrawlError BUILD_DIFFERS if `<out>.partial` has an unfinished build with other settings, BUILD_LOCKED while
 * another process builds there, INDEX_EXISTS, DISK_FULL, OUTPUT_NOT_WRITABLE; errors of corpus, template and encoder.
 */
export async function buildIndex(options: BuildOptions): Promise<BuildSummary> {
  const build = new Build(options);
  const output = await OutputFolder.prepare(build);
  return keepOnFailure(output, async () => {
    // Undefined for a corpus from a pipe, which can be read only once.
    const scan = await scanFiles(build);
    const places = await claimPlaces(output, build, scan);
    const unfinishedPlaces = places.filter((place) => !isComplete(place));
    await checkSpaceForPassages(output, build, scan, unfinishedPlaces);
    const corpusFiles = await storePassages(build, unfinishedPlaces, scan);
    const shards = storedShards(places);
    await checkPassages(build, shards);
    const unfinished = shards.filter((shard) => !isComplete(shard));
    await checkSpaceForVectors(output, build, unfinished);
    const [rows, skippedExamples] = [rowsOf(shards), skippedIn(unfinished)];
    const inputs = unfinished.map((shard) =>
      scan === undefined ? shard : { ...shard, input: shardInput(build, scan, shard, shards.length) },
    );
    const rowsDone = rows - rowsOf(unfinished);
    const { tokens, resumedRows } = await buildShards(build, inputs, {
      corpusFiles,
      rows,
      rowsDone,
      shards: shards.length,
    });
    build.clock.start('finish');
    build.onProgress({ stage: 'finish', passages: rows, totalPassages: rows });
    const joined = await joinShards(output.folder, build);
    await output.publish();
    return {
      folder: output.final,
      ...joined,
      tokens,
      resumedRows,
      skippedExamples,
      stageMs: build.clock.stop(),
    };
  });
}

/**
 * Records the build's settings in the folder, or compares them with those of an unfinished build, and divides the corpus
 * into shards.
 *
 * @throws TrawlError BUILD_DIFFERS; VECTORS_MISMATCH if the corpus has fewer lines than there are vectors.
 */
async function claimPlaces(
  output: OutputFolder,
  build: Build,
  scan: CorpusScan | undefined,
): Promise<readonly PlannedShard[]> {
  const { vectors, restart, shardRows } = build;
  if (vectors !== undefined && scan !== undefined && scan.positions < vectors.set.rows) {
    checkRows(vectors, scan.positions, 'the corpus has at most');
  }
  const hasJobs = !existsSync(join(output.folder, BUILD_FILE)) && existsSync(join(output.folder, shardFolderName(0)));
  if (hasJobs && !restart) throw buildDiffers(output.folder, ['its shards were built by jobs (--shard i/n)']);
  const shards = scan === undefined ? 1 : shardCount(scan.positions, shardRows);
  await claimFolder(output, buildRecord(build, shards, scan), restart);
  return cutPositions(scan?.positions ?? 0, shards).map((range) => ({
    ...range,
    ...(scan === undefined ? { end: Number.POSITIVE_INFINITY } : {}),
    folder: join(output.folder, shardFolderName(range.index)),
  }));
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(build: Build, shards: readonly StoredShard[]): Promise<void> {
  if (rowsOf(shards) === 0) throw emptyCorpus();
  const files = shards.map(({ folder }) => join(folder, PASSAGES_FILE));
  if (build.mayLackTitles !== true && lacksTitles(build.bm25, files, build.signal)) throw noTitles();
  if (build.uniqueIds) checkedDuplicates(files, build);
  if (build.vectors === undefined) return;
  checkRows(build.vectors, rowsOf(shards));
  await checkVectors(build.vectors, shards, build);
}

function skippedIn(shards: readonly StoredShard[]): readonly string[] {
  return shards.flatMap(({ folder }) => storedPassages(folder)!.skippedExamples).slice(0, 10);
}
