import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { availableMemory } from '../../src/base/system/memory.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { type FlatIndex, openFlatIndex } from '../../src/engine/vectors/flat-index.ts';
import type { ShardSource } from '../../src/engine/vectors/vector-index.ts';
import { SHORT_ROWS, type TriedIndex, trialVectors } from './trial-vectors.ts';

/** Queries of a search that are tried. @internal Exported for tests. */
export const TRIED_QUERIES = [1, 16, 64, 256, 512] as const;
export type TriedQueries = (typeof TRIED_QUERIES)[number];

/** How long a search takes: `fixedMs` + rows × `msPerRow`. */
export interface SearchCost {
  readonly queries: TriedQueries;
  readonly fixedMs: number;
  readonly msPerRow: number;
}

/** What this machine can do, from a trial of two or three seconds. */
export type SpeedTrial = Awaited<ReturnType<typeof trySpeed>>;

/** Each search is repeated for this time, at least MIN_SEARCHES times; the fastest counts. */
const TIME_MS = 40;
const MIN_SEARCHES = 3;
/** The share of the principal components that a prefilter keeps: 320 of 768, which the engine chooses for E5. */
export const COMPONENTS_SHARE = 320 / 768;
const MAX_READ_BYTES = 2 ** 30;

/**
 * Measures the memory bandwidth, and searches over rows like E5's in a folder for temporary files (a few hundred MB, removed at the
 * end).
 *
 * @throws TrawlError CANCELLED, OUT_OF_MEMORY, DISK_FULL or OUTPUT_NOT_WRITABLE.
 */
export async function trySpeed(kernel: Kernel, { dimension, rows: searchedRows }: TriedIndex, signal?: AbortSignal) {
  const readBytes = Math.max(2 ** 26, Math.min(MAX_READ_BYTES, Math.floor(availableMemory() / 4)));
  const { readBytesPerS } = await kernel.measurePeaks(readBytes, signal);
  const folder = await mkdtemp(join(tmpdir(), 'trawl-trial-'));
  try {
    const { rows, queries, share } = trialVectors({ dimension, rows: searchedRows }, Math.max(...TRIED_QUERIES));
    const trial: Trial = { kernel, dimension, queries, share, signal };
    const short = await writeTrial(join(folder, 'short'), rows.subarray(0, SHORT_ROWS * dimension), trial);
    const long = await writeTrial(join(folder, 'long'), rows, trial);
    const withoutPrefilter = (shard: ShardSource): ShardSource => ({ ...shard, prefilter: undefined });
    return {
      dimension,
      threads: kernel.threads(),
      isa: kernel.isa,
      /** Bytes a second that all threads read from memory. */
      readBytesPerS,
      codes: await searchCosts(withoutPrefilter(short), withoutPrefilter(long), trial),
      /** Null if vectors of this dimension get no prefilter. */
      prefilter: long.prefilter === undefined ? null : await searchCosts(short, long, trial),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Trial {
  readonly kernel: Kernel;
  readonly dimension: number;
  readonly queries: Float32Array;
  /** The share of the rows that a search asks for. */
  readonly share: number;
  readonly signal: AbortSignal | undefined;
}

/** Writes a shard of the rows into files whose names begin with `path`. */
async function writeTrial(
  path: string,
  values: Float32Array,
  { kernel, dimension, signal }: Trial,
): Promise<ShardSource> {
  const rows = values.length / dimension;
  const vectors = `${path}.f32`;
  const codes = `${path}.i8`;
  await writeFile(vectors, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  const writer = new CodesWriter(codes, { metric: 'inner-product', dimension }, kernel);
  try {
    await writer.append(values);
    await writer.finish();
  } finally {
    writer.abandon();
  }
  const segments = [{ path: vectors, offset: 0, bytes: values.byteLength, dtype: 'float32' }] as const;
  const shard = { firstRow: 0, rows, segments, codes };
  const components = Math.round((dimension * COMPONENTS_SHARE) / 64) * 64;
  // As in native/src/dense/prefilter/prefilter_choice.cpp: shorter and longer vectors get no prefilter.
  if (dimension <= 128 || dimension > 4096 || components === 0) return shard;
  const prefilter = `${path}.prefilter`;
  await kernel.makePrefilter(prefilter, codes, { rows, dtype: 'float32', segments }, dimension, components, signal);
  return { ...shard, prefilter };
}

/**
 * Times searches over a short and a long shard. The difference is the time of the rows, the rest is fixed. Each search asks for the same
 * share of its rows as a search of the whole index, or for one.
 */
async function searchCosts(
  shortShard: ShardSource,
  longShard: ShardSource,
  { kernel, dimension, queries, share, signal }: Trial,
): Promise<SearchCost[]> {
  const open = (shard: ShardSource): Promise<FlatIndex> =>
    openFlatIndex({ dimension, metric: 'inner-product', rows: shard.rows, shards: [shard] }, kernel);
  const short = await open(shortShard);
  const long = await open(longShard);
  const fastest = async (index: FlatIndex, count: number): Promise<number> => {
    const k = Math.max(1, Math.round(share * index.rows));
    let best = Number.POSITIVE_INFINITY;
    const begun = performance.now();
    for (let i = 0; i < MIN_SEARCHES || performance.now() - begun < TIME_MS; i++) {
      const from = performance.now();
      const batch = { queries: queries.subarray(0, count * dimension), count, k };
      await index.search({ ...batch, signal });
      best = Math.min(best, performance.now() - from);
    }
    return best;
  };
  try {
    const costs: SearchCost[] = [];
    for (const count of TRIED_QUERIES) {
      const times = { shortMs: await fastest(short, count), longMs: await fastest(long, count) };
      costs.push(costOf(count, { ...times, shortRows: short.rows, longRows: long.rows }));
    }
    return costs;
  } finally {
    await Promise.all([short.close(), long.close()]);
  }
}

/** The line through the times of two searches. Never below zero. @internal Exported for tests. */
export function costOf(
  queries: TriedQueries,
  { shortMs, longMs, shortRows, longRows }: { shortMs: number; longMs: number; shortRows: number; longRows: number },
): SearchCost {
  const slope = (longMs - shortMs) / (longRows - shortRows);
  // Disturbed: the larger search was not slower. Then all of its time counts for its rows.
  const msPerRow = slope > 0 ? slope : longMs / longRows;
  return { queries, msPerRow, fixedMs: Math.max(0, shortMs - msPerRow * shortRows) };
}
