import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { checkSpaceForPassages, checkSpaceForVectors } from '../disk-space.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { lacksTitles, noTitles } from '../lexical/check-titles.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { checkRows } from '../vectors/precomputed-vectors.ts';
import type { BuildOptions, WorkSummary } from './build-options.ts';
import { BuildRun, modelLocation, shardInput } from './build-run.ts';
import { buildDiffers, buildRecord, claimFolder } from './build-settings.ts';
import { checkInputsOutside } from './check-inputs.ts';
import { emptyCorpus, joinShards, repeatedIds } from './join-shards.ts';
import { keepOnFailure } from './keep-on-failure.ts';
import { OutputFolder } from './output-folder.ts';
import {
  isComplete,
  type PlannedShard,
  rowsOf,
  type StoredShard,
  storedPassages,
  storedShards,
} from './planned-shard.ts';
import { cutPositions, DEFAULT_SHARD_ROWS, shardCount } from './shard-cut.ts';

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
  const run = new BuildRun(options);
  checkInputsOutside(options);
  const output = await OutputFolder.prepare(options.out, options.overwrite);
  return keepOnFailure(output, async () => {
    // Undefined for a corpus from a pipe, which can be read only once.
    const scan = await run.scan();
    const places = await claimPlaces(output, options, scan);
    const unfinishedPlaces = places.filter((place) => !isComplete(place));
    await checkSpaceForPassages(output, options, scan, unfinishedPlaces);
    const corpusFiles = await run.storePassages(unfinishedPlaces, scan);
    const shards = storedShards(places);
    await checkPassages(shards, options);
    const unfinished = shards.filter((shard) => !isComplete(shard));
    await checkSpaceForVectors(output, options, unfinished);
    const [rows, skippedExamples] = [rowsOf(shards), skippedIn(unfinished)];
    const inputs = unfinished.map((shard) =>
      scan === undefined ? shard : { ...shard, input: shardInput(options, scan, shard, shards.length) },
    );
    const rowsDone = rows - rowsOf(unfinished);
    const built = await run.makeVectors(inputs, { corpusFiles, rows, rowsDone, shards: shards.length });
    run.finish(rows);
    const joined = await joinShards(output.folder, { ...options, modelLocation: modelLocation(options) });
    await output.publish();
    return {
      folder: output.final,
      ...joined,
      tokens: built.reduce((sum, { tokens }) => sum + tokens, 0),
      resumedRows: built.reduce((sum, { resumedRows }) => sum + resumedRows, rowsDone),
      skippedExamples,
      stageMs: run.clock.stop(),
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
  options: BuildOptions,
  scan: CorpusScan | undefined,
): Promise<readonly PlannedShard[]> {
  const { encoder, vectors, restart = false, shardRows = DEFAULT_SHARD_ROWS } = options;
  if (vectors !== undefined && scan !== undefined && scan.positions < vectors.set.rows) {
    checkRows(vectors, scan.positions, 'the corpus has at most');
  }
  const hasJobs = !existsSync(join(output.folder, BUILD_FILE)) && existsSync(join(output.folder, shardFolderName(0)));
  if (hasJobs && !restart) throw buildDiffers(output.folder, ['its shards were built by jobs (--shard i/n)']);
  const shards = scan === undefined ? 1 : shardCount(scan.positions, shardRows);
  await claimFolder(output, buildRecord({ ...options, model: encoder?.identity ?? null, shards, scan }), restart);
  return cutPositions(scan?.positions ?? 0, shards).map((range) => ({
    ...range,
    ...(scan === undefined ? { end: Number.POSITIVE_INFINITY } : {}),
    folder: join(output.folder, shardFolderName(range.index)),
  }));
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(shards: readonly StoredShard[], options: BuildOptions): Promise<void> {
  const { uniqueIds, vectors } = options;
  if (rowsOf(shards) === 0) throw emptyCorpus();
  const files = shards.map(({ folder }) => join(folder, PASSAGES_FILE));
  if (options.mayLackTitles !== true && lacksTitles(options.bm25, files, options.signal)) throw noTitles();
  if (uniqueIds) {
    const duplicates = duplicateIds(files, options);
    if (duplicates.count > 0) throw repeatedIds(duplicates);
  }
  if (vectors === undefined) return;
  checkRows(vectors, rowsOf(shards));
  await checkVectors(vectors, shards, options);
}

function skippedIn(shards: readonly StoredShard[]): readonly string[] {
  return shards.flatMap(({ folder }) => storedPassages(folder)!.skippedExamples).slice(0, 10);
}
