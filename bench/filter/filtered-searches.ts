import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { Random } from '../../src/base/random.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { heldOutQueries } from '../flat/queries.ts';
import { openTrawlIndex } from '../flat/trawl-engine.ts';
import { generatedCorpus, queryLists } from '../lexical/lexical-corpora.ts';
import { openInvertedIndex, writeInvertedIndex } from '../lexical/trawl-engine.ts';
import { basisFor } from '../vectors/vector-basis.ts';
import { syntheticFile } from '../vectors/vector-cache.ts';

export const FILTERED_MODES = ['dense', 'bm25'] as const;
type FilteredMode = (typeof FILTERED_MODES)[number];

/** Shares of the rows that pass, in percent. They are scattered at random, the hardest case for an engine. 100: no filter. */
const PERCENTAGES = [100, 50, 10, 1, 0.1];
/** Queries of a run, in one call or several. */
const QUERIES_A_RUN = 32;

export interface FilteredSearchRecord {
  /** Mode, queries of a call, and share of the rows. */
  readonly case: string;
  readonly mode: FilteredMode;
  readonly rows: number;
  readonly queries: number;
  readonly k: number;
  /** Rows that pass. */
  readonly passing: number;
  readonly runs: number;
  /** Time of a call, in milliseconds: the median over the runs of the mean of a run. */
  readonly medianMs: number;
  /** The same divided by that without a filter. */
  readonly shareOfUnfiltered: number;
}

export interface FilteredSearchOptions {
  readonly modes: readonly FilteredMode[];
  readonly rows: number;
  readonly dimension: number;
  readonly queryCounts: readonly number[];
  readonly k: number;
  readonly runs: number;
  readonly seed: number;
  readonly threads: number;
  readonly corpus: readonly string[];
  readonly queryTexts: string | undefined;
  readonly calls: string | undefined;
  readonly cache: string;
  readonly scratch: string;
  readonly kernel: Kernel;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** Searches queries `first` to `first + count`, counted around. */
type Search = (first: number, count: number, filter: RowBitmap | undefined) => Promise<unknown>;

/** Times searches of each mode among scattered rows, all shares in turns. */
export async function filteredSearches(options: FilteredSearchOptions): Promise<FilteredSearchRecord[]> {
  const records: FilteredSearchRecord[] = [];
  for (const mode of options.modes) {
    const { search, close } = await (mode === 'dense' ? denseSearch(options) : bm25Search(options));
    try {
      for (const count of options.queryCounts) records.push(...(await timed(mode, search, count, options)));
    } finally {
      await close();
    }
  }
  return records;
}

async function timed(
  mode: FilteredMode,
  search: Search,
  queries: number,
  { rows, k, runs, seed, signal }: FilteredSearchOptions,
): Promise<FilteredSearchRecord[]> {
  const shares = PERCENTAGES.map((percent) => {
    const filter = percent === 100 ? undefined : scatteredRows(rows, percent / 100, seed);
    return { percent, filter, passing: filter?.count() ?? rows, samples: [] as number[] };
  });
  const calls = Math.max(1, Math.floor(QUERIES_A_RUN / queries));
  // The first run is not counted.
  for (let run = -1; run < runs; run++) {
    for (const { filter, samples } of shares) {
      throwIfCancelled(signal);
      const start = performance.now();
      for (let call = 0; call < calls; call++)
        await search((run + 1) * calls * queries + call * queries, queries, filter);
      if (run >= 0) samples.push((performance.now() - start) / calls);
    }
  }
  const medians = shares.map(({ samples }) => median(sortedSamples(samples)));
  return shares.map(({ percent, passing }, i) => ({
    case: `${mode}, ${queries} ${queries === 1 ? 'query' : 'queries'}, ${percent} %`,
    mode,
    rows,
    queries,
    k,
    passing,
    runs,
    medianMs: medians[i]!,
    shareOfUnfiltered: medians[i]! / medians[0]!,
  }));
}

function scatteredRows(rows: number, share: number, seed: number): RowBitmap {
  const random = new Random(seed, rows, Math.round(1 / share));
  const bitmap = new RowBitmap(rows);
  for (let row = 0; row < rows; row++) if (random.uniform() <= share) bitmap.add(row);
  return bitmap;
}

async function denseSearch(options: FilteredSearchOptions): Promise<{ search: Search; close(): Promise<void> }> {
  const { rows, dimension, k, runs, seed, threads, cache, queryCounts } = options;
  const basis = basisFor({ dimension });
  const context = { ...options, folder: join(cache, 'bench') };
  const file = await syntheticFile({ rows, dimension, dtype: 'float32', seed, basis }, context);
  const index = await openTrawlIndex(file, { threads, withPrefilter: true }, context);
  const wanted = (runs + 1) * Math.max(QUERIES_A_RUN, ...queryCounts);
  const { values } = heldOutQueries(basis, wanted, seed);
  return {
    async search(first, count, filter) {
      const queries = values.subarray(first * dimension, (first + count) * dimension);
      return index.search({ queries, count, k, filter });
    },
    close: () => index.close(),
  };
}

async function bm25Search(options: FilteredSearchOptions): Promise<{ search: Search; close(): Promise<void> }> {
  const { kernel, scratch, k, threads, signal } = options;
  kernel.setThreads(threads);
  const corpus = await generatedCorpus({ ...options, withTerms: false });
  const path = join(scratch, 'filtered.bm25');
  await writeInvertedIndex(path, corpus, kernel, signal);
  const index = await openInvertedIndex(path, corpus);
  const [list] = await queryLists(options);
  const texts = list!.queries;
  return {
    async search(first, count, filter) {
      const queries = Array.from({ length: count }, (_, i) => texts[(first + i) % texts.length]!);
      return index.search({ queries, k, filter });
    },
    close: () => index.close(),
  };
}
