import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { environmentVariable } from '../../src/base/options/environment.ts';
import { availableMemory } from '../../src/base/system/memory.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { codesBytes } from '../../src/engine/vectors/codes-size.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { baselinePython } from '../baselines.ts';
import type { BenchCommon } from '../bench-common.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { formatGigabytes } from '../report-format.ts';
import { EngineUnavailable } from '../script-process.ts';
import { encodeNpy, type Matrix } from '../vectors/npy.ts';
import { basisFor } from '../vectors/vector-basis.ts';
import { type CacheContext, syntheticFile } from '../vectors/vector-cache.ts';
import { openVectorFile, type VectorFile } from '../vectors/vector-file.ts';
import { openBaseline } from './baseline-engine.ts';
import { type FlatRecord, type MostQueries, runFlatCase } from './flat-case.ts';
import type { BaselineName, FlatEngine } from './flat-engine.ts';
import { heldOutQueries, perturbedRows, queriesOfFile } from './queries.ts';
import { openTrawlEngine } from './trawl-engine.ts';

interface SyntheticRows {
  readonly source: 'synthetic';
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  /** A FAISS file; the rows get the distribution of its vectors. */
  readonly like: string | undefined;
}

export interface BenchFlatOptions extends BenchCommon {
  readonly vectors: SyntheticRows | { readonly source: 'file'; readonly path: string };
  readonly queryVectors: string | undefined;
  readonly queryCounts: readonly number[];
  readonly k: number;
  readonly against: readonly BaselineName[];
  /** Engines that are measured only up to a number of queries. */
  readonly mostQueries?: MostQueries;
  /** Whether to use the prefilter, as `trawl index` does if it makes searches faster. */
  readonly prefilter: boolean;
  readonly bandwidthGbPerS: number | null;
}

export interface BenchFlatResult {
  readonly environment: Environment;
  /** Where the rows and queries come from. */
  readonly vectors: string;
  readonly records: readonly FlatRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** Memory left for the system, this process and the baselines' scores. */
const RESERVED_BYTES = 1_500_000_000;

/** Generates the missing files, loads every engine and measures. */
export async function benchFlat(options: BenchFlatOptions): Promise<BenchFlatResult> {
  const { queryCounts, k, threads, runs, mostQueries = {}, signal, note } = options;
  const loadBefore = loadNow();
  const kernel = kernelOrNone();
  const context: CacheContext = { folder: join(options.cache, 'bench'), kernel, signal, note };
  const { file, queries, description } = await prepare(options, context);
  const { rows, dimension, dtype } = file;
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`Skipped ${engine}: ${reason}`);
  };
  const engines: FlatEngine[] = [];
  try {
    engines.push(await openTrawlEngine(file, queries, { threads, withPrefilter: options.prefilter }, context));
    engines.push(...(await openBaselines(options, file, queries, skip)));
    const flatCase = { rows, dimension, dtype, k, threads, runs, queryCounts, mostQueries, queries: queries.rows };
    for (const { name } of engines) {
      const most = mostQueries[name] ?? Number.POSITIVE_INFINITY;
      const more = queryCounts.filter((count) => count > most);
      if (more.length > 0)
        skip(name, `with ${more.join(' and ')} queries at once: this size measures it up to ${most}`);
    }
    const records = await runFlatCase(flatCase, engines, {
      signal,
      onLost: skip,
      onStep: (step) => note(`measured: ${step}`),
    });
    const facts = { kernel, engines, loadBefore, bandwidthGbPerS: options.bandwidthGbPerS };
    return { environment: environment(facts), vectors: description, records, skipped };
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
}

function kernelOrNone(): Kernel | undefined {
  if (environmentVariable('TRAWL_ISA') === 'reference') return undefined;
  const loaded = loadKernel();
  return loaded.ok ? loaded.kernel : undefined;
}

/** Opens or generates the rows and queries. Checks the options before it generates rows. */
async function prepare(
  options: BenchFlatOptions,
  context: CacheContext,
): Promise<{ file: VectorFile; queries: Matrix; description: string }> {
  const { vectors, queryVectors, queryCounts, runs, seed } = options;
  // Each run and the warm-up use different queries.
  const wanted = Math.max(...queryCounts) * (runs + 1);
  if (vectors.source === 'file') {
    const file = openVectorFile(vectors.path);
    checkResults(options, file.rows);
    const queries =
      queryVectors === undefined
        ? perturbedRows(file, wanted, seed)
        : await queriesOfFile(queryVectors, file.dimension);
    checkQueries(options, queries);
    return { file, queries, description: `${vectors.path}; queries: ${queryVectors ?? 'rows with noise'}` };
  }
  checkResults(options, vectors.rows);
  const basis = basisFor(vectors);
  const queries =
    queryVectors === undefined
      ? heldOutQueries(basis, wanted, seed)
      : await queriesOfFile(queryVectors, vectors.dimension);
  checkQueries(options, queries);
  const file = await syntheticFile({ ...vectors, seed, basis }, context);
  return { file, queries, description: `synthetic, like ${basis.name}; queries: ${queryVectors ?? 'held out'}` };
}

function checkResults({ k }: BenchFlatOptions, rows: number): void {
  if (k <= rows) return;
  throw new TrawlError('USAGE', `--k is ${k}, but there are ${rows} rows. Lower --k or use more rows.`);
}

function checkQueries({ queryCounts }: BenchFlatOptions, queries: Matrix): void {
  const most = Math.max(...queryCounts);
  if (most <= queries.rows) return;
  throw new TrawlError(
    'USAGE',
    `--queries has ${most}, but there are ${queries.rows} query vectors. Lower it or give more query vectors.`,
  );
}

async function openBaselines(
  { against, python, cache, threads, scratch, signal }: BenchFlatOptions,
  file: VectorFile,
  queries: Matrix,
  skip: (engine: string, reason: string) => void,
): Promise<FlatEngine[]> {
  const interpreter = python ?? baselinePython(cache, 'flat');
  const queriesFile = join(scratch, 'queries.npy');
  await writeFile(queriesFile, encodeNpy(queries));
  // Reserve memory for the codes, which may not be in the page cache yet.
  let freeBytes = availableMemory() - codesBytes(file.rows, file.dimension) - RESERVED_BYTES;
  const needed = file.rows * file.dimension * 4;
  const opened: FlatEngine[] = [];
  for (const name of against) {
    if (signal.aborted) break;
    if (interpreter === undefined) skip(name, 'no Python environment: run trawl bench baselines');
    else if (needed > freeBytes) {
      skip(
        name,
        `its rows need ${formatGigabytes(needed)} of memory, but only ${formatGigabytes(Math.max(0, freeBytes))} are free`,
      );
    } else {
      try {
        opened.push(
          await openBaseline(name, { python: interpreter, threads, vectors: file.segment.path, queries: queriesFile }),
        );
        freeBytes -= needed;
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
        skip(name, error.message);
      }
    }
  }
  return opened;
}
