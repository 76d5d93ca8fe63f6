import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kernel } from '../native/kernel.ts';
import { availableMemory } from '../system/memory.ts';
import { CodesWriter } from '../vector-index/codes-writer.ts';
import { FlatIndex } from '../vector-index/flat-index.ts';
import type { ShardSource } from '../vector-index/index-source.ts';
import { plantHits } from './planted-hits.ts';
import { trialRows } from './trial-rows.ts';

/** Queries of a search that are tried. */
export const TRIED_QUERIES = [1, 16, 64, 256, 512] as const;
export type TriedQueries = (typeof TRIED_QUERIES)[number];

/** How long a search takes whose rows are in the processor's caches: `fixedMs` + rows × `msPerRow`. */
export interface SearchCost {
  readonly queries: TriedQueries;
  readonly fixedMs: number;
  readonly msPerRow: number;
}

/** What this machine can do, from a trial of two or three seconds. */
export interface SpeedTrial {
  readonly dimension: number;
  readonly threads: number;
  readonly isa: string;
  /** Bytes a second that all threads read from memory. */
  readonly readBytesPerS: number;
  /** Searches that scan the codes. */
  readonly codes: readonly SearchCost[];
  /** Searches that scan a prefilter; null if vectors of this dimension get none. */
  readonly prefilter: readonly SearchCost[] | null;
}

/** Values of all trial rows together: 32,768 rows of 768. */
const TRIAL_VALUES = 2 ** 15 * 768;
const ROWS = { min: 2 ** 11, max: 2 ** 16 } as const;
/** The index of the long search has its shard this many times. */
const COPIES = 4;
/** Passages that a search of the index returns. */
const RESULTS = 10;
/** Each search is repeated for this time, at least MIN_SEARCHES times; the fastest counts. */
const TIME_MS = 40;
const MIN_SEARCHES = 3;
/** The share of the principal components that a prefilter keeps: 320 of 768, which the engine chooses for E5. */
const COMPONENTS_SHARE = 320 / 768;
const MAX_READ_BYTES = 2 ** 30;

/** What is to be searched. */
export interface TriedIndex {
  readonly dimension: number;
  /** Rows of the whole index. The more there are, the smaller is the share of them that comes near the best hits. */
  readonly rows: number;
}

/**
 * Measures the memory bandwidth, and searches over rows like E5's in a folder for temporary files (a few hundred MB, removed at the
 * end).
 *
 * @throws TrawlError CANCELLED, OUT_OF_MEMORY, DISK_FULL or OUTPUT_NOT_WRITABLE.
 */
export async function trySpeed(
  kernel: Kernel,
  { dimension, rows: searchedRows }: TriedIndex,
  signal?: AbortSignal,
): Promise<SpeedTrial> {
  const readBytes = Math.max(2 ** 26, Math.min(MAX_READ_BYTES, Math.floor(availableMemory() / 4)));
  const { readBytesPerS } = await kernel.measurePeaks(readBytes, signal);
  const folder = await mkdtemp(join(tmpdir(), 'trawl-trial-'));
  try {
    const rows = Math.max(ROWS.min, Math.min(ROWS.max, Math.floor(TRIAL_VALUES / dimension)));
    const values = trialRows(rows, dimension, 1);
    const queries = trialRows(Math.max(...TRIED_QUERIES), dimension, 2);
    const share = RESULTS / Math.max(RESULTS, searchedRows);
    if (share * rows < 1) plantHits(values, queries, dimension, share);
    const shard = await writeTrial(folder, { values, rows, dimension }, kernel, signal);
    const cost = (source: ShardSource): Promise<SearchCost[]> =>
      searchCosts(source, { dimension, queries, share, kernel, signal });
    const { prefilter, ...codesAlone } = shard;
    return {
      dimension,
      threads: kernel.threads,
      isa: kernel.isa,
      readBytesPerS,
      codes: await cost(codesAlone),
      prefilter: prefilter === undefined ? null : await cost(shard),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeTrial(
  folder: string,
  { values, rows, dimension }: { readonly values: Float32Array; readonly rows: number; readonly dimension: number },
  kernel: Kernel,
  signal: AbortSignal | undefined,
): Promise<ShardSource> {
  const [path, codes, prefilter] = ['rows.f32', 'rows.i8', 'prefilter.i8'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(path, new Uint8Array(values.buffer));
  const writer = new CodesWriter(codes, { metric: 'inner-product', dimension }, kernel);
  try {
    await writer.append(values);
    await writer.finish();
  } finally {
    writer.abandon();
  }
  const segments = [{ path, offset: 0, bytes: values.byteLength, dtype: 'float32' }] as const;
  const shard = { firstRow: 0, rows, segments, codes };
  const components = Math.round((dimension * COMPONENTS_SHARE) / 64) * 64;
  // As in native/src/prefilter_choice.cpp: shorter and longer vectors get no prefilter.
  if (dimension <= 128 || dimension > 4096 || components === 0) return shard;
  await kernel.makePrefilter(prefilter, codes, { rows, dtype: 'float32', segments }, dimension, { components, signal });
  return { ...shard, prefilter };
}

/**
 * Times searches over the shard once and COPIES times. The difference is the time of the rows, the rest is fixed. The copies map the same
 * file, so that the rows stay in the caches: what the memory allows is measured apart from what the processor allows. Each search asks for
 * the same share of its rows as a search of RESULTS of the whole index, or for one.
 */
async function searchCosts(
  shard: ShardSource,
  {
    dimension,
    queries,
    share,
    kernel,
    signal,
  }: { dimension: number; queries: Float32Array; share: number; kernel: Kernel; signal: AbortSignal | undefined },
): Promise<SearchCost[]> {
  const open = (copies: number): FlatIndex => {
    const shards = Array.from({ length: copies }, (_, i) => ({ ...shard, firstRow: i * shard.rows }));
    return FlatIndex.open({ dimension, metric: 'inner-product', rows: copies * shard.rows, shards }, kernel);
  };
  const [short, long] = [open(1), open(COPIES)];
  try {
    const costs: SearchCost[] = [];
    for (const count of TRIED_QUERIES) {
      const fastest = async (index: FlatIndex, copies: number): Promise<number> => {
        const k = Math.max(1, Math.round(share * shard.rows * copies));
        let best = Number.POSITIVE_INFINITY;
        const begun = performance.now();
        for (let i = 0; i < MIN_SEARCHES || performance.now() - begun < TIME_MS; i++) {
          const from = performance.now();
          const batch = { queries: queries.subarray(0, count * dimension), count, k };
          await index.search(signal === undefined ? batch : { ...batch, signal });
          best = Math.min(best, performance.now() - from);
        }
        return best;
      };
      const [one, many] = [await fastest(short, 1), await fastest(long, COPIES)];
      costs.push(costOf(count, { one, many, rows: shard.rows, copies: COPIES }));
    }
    return costs;
  } finally {
    await Promise.all([short.close(), long.close()]);
  }
}

/** The line through two measured times: `one` of `rows` rows, `many` of `copies` times as many. Never below zero. */
export function costOf(
  queries: TriedQueries,
  { one, many, rows, copies }: { one: number; many: number; rows: number; copies: number },
): SearchCost {
  const slope = (many - one) / (rows * (copies - 1));
  // Disturbed: the larger search was not slower. Then all of its time counts for its rows.
  const msPerRow = slope > 0 ? slope : many / (rows * copies);
  return { queries, msPerRow, fixedMs: Math.max(0, one - msPerRow * rows) };
}
