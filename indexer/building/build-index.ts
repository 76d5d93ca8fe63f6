import { join } from 'node:path';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { lacksTitles, noTitles } from '../lexical/check-titles.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { checkRows } from '../vectors/precomputed-vectors.ts';
import { type Build, type BuildOptions, resolveBuild, scanFiles, type WorkSummary } from './build.ts';
import { buildRecord, claimFolder } from './build-settings.ts';
import { buildShards, plannedShards, shardCount } from './build-shards.ts';
import { emptyCorpus, joinShards, repeatedIds } from './join-shards.ts';
import { keepOnFailure } from './keep-on-failure.ts';
import { OutputFolder } from './output-folder.ts';
import { type StoredShard, totalRows } from './planned-shard.ts';

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
  const build = resolveBuild(options);
  const { vectors, restart } = build;
  const output = await OutputFolder.prepare(build);
  return keepOnFailure(output, async () => {
    const scan = await scanFiles(build);
    if (vectors !== undefined && scan !== undefined && scan.positions < vectors.set.rows) {
      checkRows(vectors, scan.positions, 'the corpus has at most');
    }
    const shards = scan === undefined ? 1 : shardCount(scan.positions, build.shardRows);
    const record = buildRecord(build, shards, scan);
    await claimFolder(output.folder, record, restart);
    const places = plannedShards(build, output.folder, shards, scan);
    const made = await buildShards(build, output, { scan, places, shards }, (stored) => checkPassages(build, stored));
    build.onProgress({ stage: 'finish', passages: made.rows, totalPassages: made.rows });
    const joined = await joinShards(output.folder, build);
    await output.publish();
    const { tokens, resumedRows, skippedExamples } = made;
    return { folder: output.final, ...joined, tokens, resumedRows, skippedExamples, stageMs: build.clock.stop() };
  });
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(build: Build, shards: readonly StoredShard[]): Promise<void> {
  const { bm25, vectors, signal } = build;
  if (totalRows(shards) === 0) throw emptyCorpus();
  const files = shards.map(({ folder }) => join(folder, PASSAGES_FILE));
  if (!build.mayLackTitles && lacksTitles(bm25, files, signal)) throw noTitles();
  if (build.uniqueIds) repeatedIds(files, true, { signal });
  if (vectors === undefined) return;
  checkRows(vectors, totalRows(shards));
  await checkVectors(vectors, shards, build);
}
