import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { baselinePython } from '../baselines.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { EngineUnavailable } from '../script-process.ts';
import { openBaseline } from './baseline-engine.ts';
import { type LexicalRecord, runLexicalCase } from './lexical-case.ts';
import { type CorporaOptions, generatedCorpus, givenCorpus, queryLists } from './lexical-corpora.ts';
import type { Bm25Baseline, BuildFigures, CorpusFiles, LexicalEngine } from './lexical-engine.ts';
import { openTrawlBm25 } from './trawl-engine.ts';

export interface BenchBm25Options extends Omit<CorporaOptions, 'kernel' | 'withTerms'> {
  readonly queryTexts: string | undefined;
  readonly calls: string | undefined;
  readonly against: readonly Bm25Baseline[];
  /** Most threads. The figures of one thread are measured too. */
  readonly threads: number;
  readonly runs: number;
  /** Longest pass over the queries. */
  readonly seconds: number;
  readonly python: string | undefined;
}

/** The figures of an engine's index; bench/bm25.md defines the fields. Null: does not apply to this engine. */
export interface Bm25IndexRecord {
  readonly case: string;
  readonly engine: string;
  readonly version: string;
  readonly rows: number;
  readonly textBytes: number | null;
  readonly indexBytes: number;
  readonly bitsPerPosting: number;
  readonly buildSeconds: number | null;
  readonly buildMbPerS: number | null;
  readonly analysisMbPerS: number | null;
  readonly openMs: number;
  readonly residentBytes: number | null;
}

export type Bm25Record = Bm25IndexRecord | LexicalRecord;

export interface BenchBm25Result {
  readonly environment: Environment;
  readonly records: readonly Bm25Record[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

export const KS = [10, 1_000];

/**
 * Builds each corpus with every engine, then measures the searches.
 *
 * @throws TrawlError ENGINE_MISSING without the native engine, USAGE if a corpus or the queries are missing.
 */
export async function benchBm25(options: BenchBm25Options): Promise<BenchBm25Result> {
  const { threads, against, note } = options;
  const loadBefore = loadNow();
  const kernel = requiredKernel();
  const threadsBefore = kernel.threads();
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`${engine} is left out: ${reason}`);
  };
  const withTerms = against.some((name) => name !== 'lucene');
  const corpora = { ...options, kernel, withTerms };
  const records: Bm25Record[] = [];
  const versions = new Map<string, { version: string }>();
  try {
    const queries = await queryLists({ ...options, kernel });
    for (const make of [givenCorpus, generatedCorpus]) {
      const corpus = await make(corpora);
      const folder = join(options.scratch, corpus.name);
      await mkdir(folder);
      const engines: LexicalEngine[] = [];
      try {
        const path = join(folder, 'trawl.bm25');
        engines.push(await openTrawlBm25(corpus, { kernel, threads, path, signal: options.signal }));
        engines.push(...(await openBm25Baselines(corpus, folder, options, skip)));
        records.push(...indexRecords(corpus, engines));
        for (const { name, version } of engines) versions.set(name, { version });
        let running: readonly LexicalEngine[] = engines;
        for (const list of queries) {
          for (const k of KS) {
            for (const count of new Set([1, threads])) {
              const { runs, seconds, signal } = options;
              const found = await runLexicalCase(
                { corpus: corpus.name, queries: list, k, threads: count, runs, limitMs: 1_000 * seconds },
                running,
                { signal, onLost: skip },
              );
              running = running.filter(({ name }) => found.some(({ engine }) => engine === name));
              records.push(...found);
            }
          }
        }
      } finally {
        await Promise.all(engines.map((engine) => engine.close()));
        await rm(folder, { recursive: true, force: true });
      }
    }
  } finally {
    kernel.setThreads(threadsBefore);
  }
  const facts = { kernel, engines: [...versions.values()], loadBefore, bandwidthGbPerS: null };
  return { environment: environment(facts), records, skipped };
}

export function requiredKernel(): Kernel {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  throw new TrawlError(
    'ENGINE_MISSING',
    `\`trawl bench bm25\` needs the native engine, which is missing (${loaded.reason}). Install a C++ compiler and run npm run build.`,
  );
}

/** The baselines that are installed, with an index of the corpus in `folder`; `skip` is called for the others. */
export async function openBm25Baselines(
  corpus: CorpusFiles,
  folder: string,
  {
    against,
    python,
    cache,
    threads,
    signal,
  }: Pick<BenchBm25Options, 'against' | 'python' | 'cache' | 'threads' | 'signal'>,
  skip: (engine: string, reason: string) => void,
): Promise<LexicalEngine[]> {
  const interpreter = python ?? baselinePython(cache, 'bm25');
  const opened: LexicalEngine[] = [];
  for (const name of against) {
    if (signal.aborted) break;
    if (name !== 'lucene' && interpreter === undefined) {
      skip(name, 'no Python environment: run trawl bench baselines bm25');
      continue;
    }
    try {
      opened.push(await openBaseline(name, corpus, { cache, python: interpreter ?? '', threads, folder }));
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
      skip(name, error.message);
    }
  }
  return opened;
}

function indexRecords({ name, rows, textBytes }: CorpusFiles, engines: readonly LexicalEngine[]): Bm25IndexRecord[] {
  const postings = engines[0]!.build.postings!;
  return engines.map(({ name: engine, version, build }) => ({
    case: `bm25/${name}/index`,
    engine,
    version,
    rows,
    textBytes,
    indexBytes: build.bytes,
    bitsPerPosting: (8 * build.bytes) / postings,
    buildSeconds: build.seconds,
    buildMbPerS: build.seconds === null ? null : textBytes / 1e6 / build.seconds,
    analysisMbPerS: analysisSpeed(textBytes, build),
    openMs: build.openMs,
    residentBytes: null,
  }));
}

function analysisSpeed(textBytes: number, { analysisMs }: BuildFigures): number | null {
  return analysisMs === null ? null : textBytes / 1e3 / analysisMs;
}
