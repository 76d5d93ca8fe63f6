import { existsSync, rmSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { noEncoder } from '../../evaluation/bulk-search/no-encoder.ts';
import { makeEncoder, type OutputFormat } from '../../evaluation/bulk-search/outputs/output-format.ts';
import { PassageIds } from '../../evaluation/bulk-search/passage-ids.ts';
import type { QuerySource } from '../../evaluation/bulk-search/query-file.ts';
import { openQueryVectors } from '../../evaluation/bulk-search/query-vectors.ts';
import { type Progress, runBulkSearch } from '../../evaluation/bulk-search/run-bulk-search.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { reportPath } from '../../src/base/system/output-report.ts';
import { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { VectorIndex } from '../../src/engine/vectors/vector-index.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { denseInfo } from '../dense-info.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { heldOutQueries } from '../flat/queries.ts';
import { openTrawlIndex } from '../flat/trawl-engine.ts';
import { NoOpEncoder } from '../no-op-encoder.ts';
import { encodeNpy, type Matrix } from '../vectors/npy.ts';
import { basisFor } from '../vectors/vector-basis.ts';
import { type CacheContext, syntheticFile } from '../vectors/vector-cache.ts';

/** Queries of a search: those of a batch of `trawl search --queries`. */
const BATCH_QUERIES = 256;
const FORMATS = ['npy', 'parquet', 'jsonl'] as const satisfies readonly OutputFormat[];
/** Characters of a passage's text, as in wiki-18. */
const PASSAGE_CHARACTERS = 600;

export interface BenchBulkOptions {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly like: string | undefined;
  /** Queries in all. */
  readonly queries: number;
  readonly k: number;
  readonly prefilter: boolean;
  /** Pieces of the queries, in each of which every way has its turn. */
  readonly runs: number;
  readonly seed: number;
  readonly threads: number;
  readonly cache: string;
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BulkRecord {
  /** `engine`: searches of 256 queries, one after another. The others: bulk searches with that output. */
  readonly case: string;
  readonly rows: number;
  readonly dimension: number;
  readonly queries: number;
  readonly k: number;
  readonly threads: number;
  /** Of all queries. */
  readonly seconds: number;
  readonly queriesPerS: number;
  readonly ratioToEngine: number;
  /** The smallest and the largest ratio of a piece. */
  readonly ratios: readonly [number, number];
}

export interface BenchBulkResult {
  readonly environment: Environment;
  readonly records: readonly BulkRecord[];
}

/**
 * Times bulk searches by vectors beside the engine alone, which searches the same queries in batches. The queries are divided into
 * pieces; in each piece every way has its turn, so that other work on the machine slows all of them alike.
 */
export async function benchBulk(options: BenchBulkOptions): Promise<BenchBulkResult> {
  const { rows, dimension, queries, k, runs, seed, threads, signal, note } = options;
  const loadBefore = loadNow();
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  const context: CacheContext = { folder: join(options.cache, 'bench'), kernel, signal, note };
  const basis = basisFor(options);
  const asked = heldOutQueries(basis, queries, seed);
  const file = await syntheticFile({ rows, dimension, dtype: options.dtype, seed, basis }, context);
  const engine = await openTrawlIndex(file, { threads, withPrefilter: options.prefilter }, context);
  const shards = [{ path: await passageFile(rows, context), firstRow: 0, rows }];
  const passages = await SqlitePassageStore.open(shards);
  const retriever = retrieverOf(engine, passages, options);
  const sources = new Map<OutputFormat, QuerySource>();
  try {
    const vectors = join(options.scratch, 'queries.npy');
    await writeFile(vectors, encodeNpy(asked));
    const cases = ['engine', ...FORMATS] as const;
    // The query file is opened, and ids are read, once for each format, as in one command for all queries.
    const ids = new Map(
      FORMATS.map((format) => [format, new PassageIds([{ name: undefined, store: passages, shards }])]),
    );
    const isRead = new Set<OutputFormat>();
    const sourceOf = async (format: OutputFormat): Promise<QuerySource> => {
      const source = sources.get(format) ?? (await openQueryVectors(vectors, { dimension, texts: undefined, signal }));
      sources.set(format, source);
      return source;
    };
    const times = new Map<string, number[]>(cases.map((name) => [name, []]));
    const warmUp = { first: 0, end: Math.min(queries, 2 * BATCH_QUERIES) };
    await engineSeconds(engine, asked, warmUp, k);
    for (let run = 0; run < runs; run++) {
      const range = { first: Math.floor((run * queries) / runs), end: Math.floor(((run + 1) * queries) / runs) };
      for (let turn = 0; turn < cases.length; turn++) {
        throwIfCancelled(signal);
        const name = cases[(turn + run) % cases.length]!;
        const seconds =
          name === 'engine'
            ? await engineSeconds(engine, asked, range, k)
            : await bulkSeconds(name, { retriever, ids: ids.get(name)!, isRead, sourceOf, range, options });
        times.get(name)!.push(seconds);
      }
      note(`${range.end} of ${queries} queries, each ${cases.length} times`);
    }
    const ofEngine = times.get('engine')!;
    const records = cases.map((name): BulkRecord => {
      const each = times.get(name)!;
      const seconds = sum(each);
      const ratios = each.map((value, i) => value / ofEngine[i]!);
      return {
        case: name,
        rows,
        dimension,
        queries,
        k,
        threads,
        seconds,
        queriesPerS: queries / seconds,
        ratioToEngine: seconds / sum(ofEngine),
        ratios: [Math.min(...ratios), Math.max(...ratios)],
      };
    });
    const engines = [{ version: `trawl ${packageVersion}` }];
    return { environment: environment({ kernel, engines, loadBefore, bandwidthGbPerS: null }), records };
  } finally {
    await closeAll(...sources.values(), retriever);
  }
}

interface Range {
  readonly first: number;
  readonly end: number;
}

async function engineSeconds(
  engine: VectorIndex,
  { values }: Matrix,
  { first, end }: Range,
  k: number,
): Promise<number> {
  const { dimension } = engine;
  const begun = performance.now();
  for (let at = first; at < end; at += BATCH_QUERIES) {
    const count = Math.min(BATCH_QUERIES, end - at);
    await engine.search({ queries: values.subarray(at * dimension, (at + count) * dimension), count, k });
  }
  return (performance.now() - begun) / 1000;
}

interface BulkCase {
  readonly retriever: Retriever;
  readonly ids: PassageIds;
  /** The formats whose ids were read. */
  readonly isRead: Set<OutputFormat>;
  readonly sourceOf: (format: OutputFormat) => Promise<QuerySource>;
  readonly range: Range;
  readonly options: BenchBulkOptions;
}

/** From the opening of the query file to the renamed output. */
async function bulkSeconds(
  format: OutputFormat,
  { retriever, ids, isRead, sourceOf, range, options }: BulkCase,
): Promise<number> {
  const { k, scratch, signal } = options;
  const out = join(scratch, `hits.${format}`);
  const begun = performance.now();
  const source = await sourceOf(format);
  if (format !== 'npy' && !isRead.has(format)) await ids.readAll(options.queries * k, signal);
  isRead.add(format);
  const output = await ResumableOutput.open<Progress>([out], {
    settings: {},
    restart: true,
    replaces: true,
  });
  const shape = {
    queries: range.end - range.first,
    k,
    hasRounds: false,
    isGroup: false,
    hasScoreFile: false,
    tag: 'trawl',
  };
  try {
    await runBulkSearch({
      source,
      range,
      batchQueries: BATCH_QUERIES,
      search: async (queries, stop) =>
        (await retriever.retrieve({ queries, k, documents: false, signal: stop })).outcomes,
      ids,
      output,
      encoder: (state) => makeEncoder(format, shape, state),
      saveMs: 5_000,
      onProgress: () => undefined,
      signal,
    });
    return (performance.now() - begun) / 1000;
  } finally {
    await output.close();
    for (const path of [out, reportPath(out)]) rmSync(path, { force: true });
  }
}

function retrieverOf(
  index: VectorIndex,
  passages: SqlitePassageStore,
  { rows, dimension }: BenchBulkOptions,
): IndexRetriever {
  const { identity } = new NoOpEncoder(dimension);
  const { metric } = index;
  const info = denseInfo({ index: 'bench', rows, dimension, metric, generation: 'bench', model: identity });
  return new IndexRetriever(
    info,
    { dense: { encoder: noEncoder(identity), index }, passages },
    { singleFlight: false, batchQueries: BATCH_QUERIES, maxWaitingBytes: Number.POSITIVE_INFINITY },
  );
}

/** Passages with texts of usual length, made if no earlier run left them. */
async function passageFile(rows: number, { folder, signal, note }: CacheContext): Promise<string> {
  const path = join(folder, `passages-${rows}x${PASSAGE_CHARACTERS}.sqlite`);
  if (existsSync(path)) return path;
  await mkdir(folder, { recursive: true });
  const part = `${path}.part`;
  rmSync(part, { force: true });
  const writer = new SqlitePassageWriter(part);
  const text = 'words of a passage '.repeat(PASSAGE_CHARACTERS / 19);
  for (let row = 0; row < rows; row++) {
    if (row % 10_000 === 0) throwIfCancelled(signal);
    const id = String(row);
    writer.append({ id, line: row + 1, document: JSON.stringify({ id, contents: `"Title ${row}"\n${text}` }) });
  }
  writer.finishRows();
  writer.finish();
  await rename(part, path);
  note(`wrote ${rows} passages: ${path}`);
  return path;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
