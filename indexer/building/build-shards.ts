import { join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { shardFolderName } from '../index-files.ts';
import { adoptedRows } from '../vectors/adopted-rows.ts';
import type { Build, WorkSummary } from './build.ts';
import { completeShard } from './complete-shard.ts';
import { removeRefused } from './copy-passages.ts';
import { checkSpaceForPassages, checkSpaceForVectors } from './expected-size.ts';
import type { WorkFolder } from './keep-on-failure.ts';
import {
  isComplete,
  type PlannedShard,
  type ShardPlan,
  type StoredShard,
  storedPassages,
  totalRows,
} from './planned-shard.ts';
import { copiedRows, embeddedRows, noRows, type RowSource, type ShardReport } from './row-sources.ts';
import { storedShards, storePassages } from './store-passages.ts';

/** What one call of `buildShards` did. Only `rows` and `resumedRows` also count shards that were complete before. */
interface BuiltShards extends Pick<WorkSummary, 'tokens' | 'resumedRows' | 'skippedExamples' | 'passagesWithoutId'> {
  readonly manifests: readonly ShardManifest[];
  /** Rows of all planned shards. */
  readonly rows: number;
}

/** The smallest number of shards, at least 1, with at most `shardRows` positions each. */
export function shardCount(positions: number, shardRows: number): number {
  return Math.max(1, Math.ceil(positions / shardRows));
}

/**
 * Divides [0, positions) into ranges whose lengths differ by at most one. The result depends only on the two numbers, so jobs
 * need not communicate. Some ranges are empty if there are more shards than positions.
 */
export function cutPositions(positions: number, shards: number): Pick<PlannedShard, 'index' | 'first' | 'end'>[] {
  const begin = (index: number): number => Number((BigInt(positions) * BigInt(index)) / BigInt(shards));
  return Array.from({ length: shards }, (_, index) => ({ index, first: begin(index), end: begin(index + 1) }));
}

/** The shards of a build, with their parts of the corpus. A pipe has one part without a known end. */
export function plannedShards(
  { reading, modelLocation }: Build,
  folder: string,
  shards: number,
  scan: CorpusScan | undefined,
): PlannedShard[] {
  const positions = scan?.positions ?? 0;
  return cutPositions(positions, shards).map(({ index, first, end }) => ({
    index,
    folder: join(folder, shardFolderName(index)),
    first,
    end: scan === undefined ? Number.POSITIVE_INFINITY : end,
    input: scan && { first, end, positions, shards, reading, modelLocation },
  }));
}

/**
 * Completes the planned shards that are not complete yet: stores their passages, then makes vectors, words and columns of one shard
 * after another, and writes their manifests.
 *
 * @param check checks the stored passages before embedding, which may take days.
 * @throws TrawlError DISK_FULL if the disk has too little space, which is checked before passages are stored and again before vectors are
 * made; the errors of corpus and encoder.
 */
export async function buildShards(
  build: Build,
  work: WorkFolder,
  plan: ShardPlan,
  check: (shards: StoredShard[]) => void | Promise<void>,
): Promise<BuiltShards> {
  const { clock, onProgress, space, passageTemplate } = build;
  const makeRows = rowSource(build);
  const unfinishedPlan = { ...plan, places: plan.places.filter((place) => !isComplete(place)) };
  await checkSpaceForPassages(build, work, unfinishedPlan);
  const corpusFiles = await storePassages(build, unfinishedPlan);
  const shards = storedShards(plan);
  await check(shards);
  const unfinished = shards.filter((shard) => !isComplete(shard));
  await checkSpaceForVectors(build, work, unfinished);
  const manifests: ShardManifest[] = [];
  const skippedExamples: string[] = [];
  const totalPassages = totalRows(shards);
  const rowsDone = totalPassages - totalRows(unfinished);
  let [rowsBefore, tokensBefore, resumedRows, passagesWithoutId] = [rowsDone, 0, rowsDone, 0];
  clock.start(build.stage);
  for (const shard of unfinished) {
    const { folder, rows, index, input } = shard;
    const report: ShardReport = (stage, done, tokens = 0) => {
      onProgress({
        stage,
        passages: rowsBefore + done,
        totalPassages,
        tokens: stage === 'encode' ? tokensBefore + tokens : undefined,
        shard: index,
        shards: plan.shards,
      });
    };
    const made = await makeRows(build, shard, report);
    const stored = await removeRefused(folder, storedPassages(folder)!, made.refused, build.signal);
    const { passagesByFile, skippedLines, sha256: passagesSha256 } = stored;
    const files = corpusFiles.map((file, i) => ({ ...file, passages: passagesByFile[i] ?? 0 }));
    const corpus = { files, skippedLines, truncatedPassages: made.truncatedPassages, passageTemplate };
    const written = { rows: stored.rows, space, vectors: made.vectors, passagesSha256, corpus, input };
    manifests.push(await completeShard(folder, written, { ...build, onRows: (done) => report('words', done) }));
    rowsBefore += rows;
    tokensBefore += made.tokens;
    resumedRows += made.resumedRows;
    passagesWithoutId += stored.rowsWithoutId;
    skippedExamples.push(...stored.skippedExamples.slice(0, MAX_EXAMPLES - skippedExamples.length));
  }
  return { manifests, rows: totalPassages, tokens: tokensBefore, resumedRows, skippedExamples, passagesWithoutId };
}

function rowSource({ space, vectors }: Build): RowSource {
  if (space === undefined) return noRows;
  if (vectors === undefined) return embeddedRows;
  return vectors.use === 'adopt' ? adoptedRows : copiedRows;
}
