import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { Random } from '../../src/base/random.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import { ColumnWriter } from '../../src/engine/columns/column-writer.ts';
import { FilterCache } from '../../src/engine/columns/filter-cache.ts';
import { openRowFilters } from '../../src/engine/columns/open-row-filters.ts';
import type { ColumnSource } from '../../src/engine/columns/row-filters.ts';
import { bindFilter } from '../../src/engine/filter/bind-filter.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { requiredKernel } from '../lexical/bench-bm25.ts';
import { type FilteredSearchOptions, type FilteredSearchRecord, filteredSearches } from './filtered-searches.ts';

/** Rows of a shard, as a build makes them. */
const SHARD_ROWS = 1_000_000;
const SOURCES = 200;
/** Values of `part`, so that `part < 100` keeps one row in 10,000. */
const PARTS = 1_000_000;
const FIRST_DAY = Date.UTC(2000, 0, 1);
const DAYS = 9_131;

const COLUMNS: readonly Column[] = [
  { name: 'source', type: 'string' },
  { name: 'date', type: 'date' },
  { name: 'part', type: 'number' },
];

const FILTERS: readonly string[] = [
  'date >= 2020-01-01 and date < 2021-01-01',
  "source in ('source-3', 'source-50', 'source-51', 'source-120', 'source-199')",
  "source = 'source-7' and not date < 2010-01-01",
  'part < 100',
  'part < 10000',
  'part < 500000',
];

export interface FilterRecord {
  /** The filter, as an expression. */
  readonly case: string;
  readonly rows: number;
  /** Rows that pass. */
  readonly passing: number;
  readonly runs: number;
  /** Time to evaluate the filter over columns in the page cache, in milliseconds, the median of the runs. */
  readonly evaluateMs: number;
  /** Time to get its bitmap from the cache. */
  readonly cachedMs: number;
}

export interface BenchFilterResult {
  readonly environment: Environment;
  readonly records: readonly (FilterRecord | FilteredSearchRecord)[];
}

export function isFilterRecord(record: FilterRecord | FilteredSearchRecord): record is FilterRecord {
  return 'evaluateMs' in record;
}

/**
 * Evaluates filters over generated columns, and with modes times searches among scattered rows.
 *
 * @throws TrawlError ENGINE_MISSING for searches without the native engine; USAGE if their corpus or queries are missing.
 */
export async function benchFilter(options: Omit<FilteredSearchOptions, 'kernel'>): Promise<BenchFilterResult> {
  const { rows, runs, seed, threads, scratch, modes, signal, note } = options;
  const load = loadNow();
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  kernel?.setThreads(threads);
  note(`writing columns of ${rows} rows`);
  const filters = await openRowFilters(await generatedColumns(rows, seed, scratch, signal), rows);
  const records: FilterRecord[] = [];
  try {
    for (const filter of FILTERS) {
      const bound = bindFilter(parseFilterExpression(filter), COLUMNS, 'the generated index');
      let passing = 0;
      const evaluated: number[] = [];
      const cached: number[] = [];
      // The first run reads the columns from the disk.
      for (let run = -1; run < runs; run++) {
        throwIfCancelled(signal);
        const cache = new FilterCache(filters);
        const start = performance.now();
        const bitmap = await cache.rows(bound);
        const between = performance.now();
        await cache.rows(bound);
        const end = performance.now();
        if (run < 0) passing = bitmap.count();
        else {
          evaluated.push(between - start);
          cached.push(end - between);
        }
      }
      const [evaluateMs, cachedMs] = [median(sortedSamples(evaluated)), median(sortedSamples(cached))];
      records.push({ case: filter, rows, passing, runs, evaluateMs, cachedMs });
    }
  } finally {
    await filters.close();
  }
  const searches = modes.length === 0 ? [] : await filteredSearches({ ...options, kernel: requiredKernel() });
  return {
    environment: environment({
      kernel,
      loadBefore: load,
      engines: [{ version: `trawl ${packageVersion}` }],
      bandwidthGbPerS: null,
    }),
    records: [...records, ...searches],
  };
}

async function generatedColumns(
  rows: number,
  seed: number,
  folder: string,
  signal: AbortSignal,
): Promise<readonly ColumnSource[]> {
  const random = new Random(seed, 1, 2);
  const below = (limit: number): number => Math.floor((1 - random.uniform()) * limit);
  const values = [
    () => `source-${below(SOURCES)}`,
    () => FIRST_DAY + 86_400_000 * below(DAYS),
    () => below(PARTS),
  ] as const;
  const sources: ColumnSource[] = [];
  for (const [i, column] of COLUMNS.entries()) {
    const paths: string[] = [];
    for (let first = 0; first < rows; first += SHARD_ROWS) {
      throwIfCancelled(signal);
      const writer = new ColumnWriter(column);
      for (let row = first; row < Math.min(rows, first + SHARD_ROWS); row++) writer.append([values[i]!()]);
      const path = join(folder, `${column.name}-${first}.bin`);
      await writer.finish(path);
      paths.push(path);
    }
    sources.push({ ...column, paths });
  }
  return sources;
}
