import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import { environmentVariable } from '../src/options/resolve-options.ts';
import { packageRoot } from '../src/package-root.ts';
import { codesBytes } from '../src/vector-index/codes-size.ts';
import { type Kernel, loadKernel } from '../src/vector-index/kernel.ts';
import type { VectorDtype } from '../src/vector-index/vector-segments.ts';
import { openBaseline } from './baseline-engine.ts';
import { baselinePython } from './baselines.ts';
import type { BaselineName, BenchEngine } from './bench-engine.ts';
import { availableMemoryBytes, type Environment, environment, loadNow } from './environment.ts';
import { type FlatRecord, runFlatCase } from './flat-case.ts';
import { encodeNpy, type Matrix } from './npy.ts';
import { heldOutQueries, perturbedRows, queriesOfFile } from './queries.ts';
import { formatGigabytes } from './report.ts';
import { EngineUnavailable } from './script-process.ts';
import { openTrawlEngine } from './trawl-engine.ts';
import { basisOfFile, basisOfSpectrum, type VectorBasis } from './vector-basis.ts';
import { type CacheContext, syntheticFile } from './vector-cache.ts';
import { openVectorFile, type VectorFile } from './vector-file.ts';

export interface SyntheticChoice {
  readonly kind: 'synthetic';
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly like: string | undefined;
}

export interface BenchFlatOptions {
  readonly vectors: SyntheticChoice | { readonly kind: 'file'; readonly path: string };
  readonly queryVectors: string | undefined;
  readonly queryCounts: readonly number[];
  readonly k: number;
  readonly against: readonly BaselineName[];
  readonly threads: number;
  /** With the screen before the codes, where one pays. */
  readonly screen: boolean;
  readonly runs: number;
  readonly seed: number;
  /** Files that stay for the next run. */
  readonly cache: string;
  /** Files that go with this one. */
  readonly scratch: string;
  readonly python: string | undefined;
  readonly bandwidthGbPerS: number | null;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchFlatResult {
  readonly environment: Environment;
  /** What the rows and queries are. */
  readonly vectors: string;
  readonly records: readonly FlatRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** Real vectors of E5-base-v2, where the checkout has them beside it. */
const E5_SAMPLE = join(packageRoot, '..', 'shared', 'data', 'flashrag_sample', 'e5_flat_sample.index');
const E5_DIMENSION = 768;

/** Left free for the system, this process, and the baselines' scores. */
const RESERVED_BYTES = 1_500_000_000;

/** Makes what is missing, loads every engine, and measures. */
export async function benchFlat(options: BenchFlatOptions): Promise<BenchFlatResult> {
  const { queryCounts, k, threads, runs, signal, note } = options;
  const loadBefore = loadNow();
  const kernel = kernelOrNone();
  const context: CacheContext = { folder: join(options.cache, 'bench'), kernel, signal, note };
  const { file, queries, description } = await prepare(options, context);
  const { rows, dimension, dtype } = file;
  if (k > rows)
    throw new TrawlError('USAGE', `--k is ${k} and there are ${rows} rows. Take fewer results or more rows.`);
  const most = Math.max(...queryCounts);
  if (most > queries.rows) {
    throw new TrawlError('USAGE', `--queries asks for ${most} at once and there are ${queries.rows} query vectors.`);
  }
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`${engine} is left out: ${reason}`);
  };
  const engines: BenchEngine[] = [];
  try {
    engines.push(await openTrawlEngine(file, queries, threads, options.screen, context));
    engines.push(...(await openBaselines(options, file, queries, skip)));
    const flatCase = { rows, dimension, dtype, k, threads, runs, queryCounts, queries: queries.rows };
    const records = await runFlatCase(flatCase, engines, { signal, onLost: skip });
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

/** Rows and queries; whatever can be refused is refused before rows are made. */
async function prepare(
  options: BenchFlatOptions,
  context: CacheContext,
): Promise<{ file: VectorFile; queries: Matrix; description: string }> {
  const { vectors, queryVectors, queryCounts, runs, seed } = options;
  // Enough for other queries in every run, and in the warm-up.
  const wanted = Math.max(...queryCounts) * (runs + 1);
  if (vectors.kind === 'file') {
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
  throw new TrawlError('USAGE', `--k is ${k} and there are ${rows} rows. Take fewer results or more rows.`);
}

function checkQueries({ queryCounts }: BenchFlatOptions, queries: Matrix): void {
  const most = Math.max(...queryCounts);
  if (most <= queries.rows) return;
  throw new TrawlError('USAGE', `--queries asks for ${most} at once and there are ${queries.rows} query vectors.`);
}

function basisFor({ like, dimension }: SyntheticChoice): VectorBasis {
  if (like === undefined && (dimension !== E5_DIMENSION || !existsSync(E5_SAMPLE))) return basisOfSpectrum(dimension);
  const basis = basisOfFile(like ?? E5_SAMPLE);
  if (basis.dimension === dimension) return basis;
  throw new TrawlError(
    'DIMENSION_MISMATCH',
    `${like} has ${basis.dimension} dimensions; give --dimension ${basis.dimension}.`,
  );
}

async function openBaselines(
  { against, python, cache, threads, scratch, signal }: BenchFlatOptions,
  file: VectorFile,
  queries: Matrix,
  skip: (engine: string, reason: string) => void,
): Promise<BenchEngine[]> {
  const interpreter = python ?? baselinePython(cache, 'flat');
  const queriesFile = join(scratch, 'queries.npy');
  await writeFile(queriesFile, encodeNpy(queries));
  // The codes may not be in memory yet, and have to stay.
  let freeBytes = availableMemoryBytes() - codesBytes(file.rows, file.dimension) - RESERVED_BYTES;
  const needed = file.rows * file.dimension * 4;
  const opened: BenchEngine[] = [];
  for (const name of against) {
    if (signal.aborted) break;
    if (interpreter === undefined) skip(name, 'no Python environment: trawl bench baselines makes one');
    else if (needed > freeBytes) {
      skip(
        name,
        `it holds ${formatGigabytes(needed)} of rows, ${formatGigabytes(Math.max(0, freeBytes))} of memory are free`,
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
