import { stat } from 'node:fs/promises';
import { packageVersion } from '../../src/base/package-root.ts';
import { DEFAULT_BM25 } from '../../src/engine/lexical/bm25.ts';
import type { LexicalIndex, LexicalResult } from '../../src/engine/lexical/lexical-index.ts';
import { type AnalyserName, engineAnalyser, isSnowball } from '../../src/engine/lexical/lexical-settings.ts';
import { openLexicalIndex, openLexicalWriter } from '../../src/engine/lexical/open-lexical.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { LexicalFileCounts } from '../../src/engine/native/lexical-functions.ts';
import type { BuildFigures, CorpusFiles, LexicalEngine, PostingCounts, QueryFiles } from './lexical-engine.ts';
import { type Hits, readTexts } from './text-file.ts';

const ANALYSER = 'english' satisfies AnalyserName;

export interface TrawlEngineOptions {
  readonly kernel: Kernel;
  /** Threads of the build. */
  readonly threads: number;
  /** Path of the inverted index. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Makes the inverted index of a corpus with the native engine in this process, and opens it. */
export async function openTrawlBm25(
  corpus: CorpusFiles,
  { kernel, threads, path, signal }: TrawlEngineOptions,
): Promise<LexicalEngine> {
  kernel.setThreads(threads);
  const begun = performance.now();
  const counts = await writeInvertedIndex(path, corpus, kernel, signal);
  const seconds = (performance.now() - begun) / 1000;
  const analysisMs = await analyse(corpus, kernel);
  const opening = performance.now();
  const index = await openInvertedIndex(path, corpus);
  const openMs = performance.now() - opening;
  const { size } = await stat(path);
  return new TrawlEngine(
    index,
    kernel,
    { seconds, bytes: size, analysisMs, openMs, postings: counts.postings },
    { analyser: ANALYSER, signal },
  );
}

/** Makes the inverted index of the texts of a corpus. */
export async function writeInvertedIndex(
  path: string,
  corpus: CorpusFiles,
  kernel: Kernel,
  signal: AbortSignal,
): Promise<LexicalFileCounts> {
  const writer = openLexicalWriter(path, ANALYSER, kernel);
  let appending: Promise<void> = Promise.resolve();
  try {
    for await (const texts of readTexts(corpus.texts)) {
      // The engine analyses one block while this thread reads the next.
      await appending;
      appending = writer.append(texts, signal);
      appending.catch(() => undefined);
    }
    await appending;
    return await writer.finish(signal);
  } finally {
    await appending.catch(() => undefined);
    writer.abandon();
  }
}

export function openInvertedIndex(path: string, { rows }: Pick<CorpusFiles, 'rows'>): Promise<LexicalIndex> {
  return openLexicalIndex({ analyser: ANALYSER, shards: [{ path, firstRow: 0, rows }] });
}

/** Milliseconds of the analysis of all passages on one thread. */
async function analyse({ texts }: CorpusFiles, kernel: Kernel): Promise<number> {
  let ms = 0;
  for await (const block of readTexts(texts)) {
    const begun = performance.now();
    for (const text of block) kernel.analyse(ANALYSER, text);
    ms += performance.now() - begun;
  }
  return ms;
}

/** An opened inverted index. */
export class TrawlEngine implements LexicalEngine {
  readonly name = 'trawl';
  readonly version: string;
  readonly build: BuildFigures;
  readonly #index: LexicalIndex;
  readonly #kernel: Kernel;
  readonly #analyser: AnalyserName;
  readonly #signal: AbortSignal;
  #queries: readonly string[] = [];
  #found: readonly LexicalResult[] = [];

  constructor(
    index: LexicalIndex,
    kernel: Kernel,
    build: BuildFigures,
    { analyser, signal }: { analyser: AnalyserName; signal: AbortSignal },
  ) {
    this.#index = index;
    this.#kernel = kernel;
    this.#analyser = analyser;
    this.#signal = signal;
    this.build = build;
    this.version = `trawl ${packageVersion}, ${kernel.isa}`;
  }

  async useQueries({ queries }: QueryFiles): Promise<number | null> {
    this.#queries = queries;
    if (isSnowball(this.#analyser)) return null;
    const begun = performance.now();
    for (const query of queries) this.#kernel.analyse(engineAnalyser(this.#analyser), query);
    return performance.now() - begun;
  }

  async lone(k: number, threads: number, limitMs: number): Promise<readonly number[]> {
    this.#kernel.setThreads(threads);
    const found: LexicalResult[] = [];
    const times: number[] = [];
    const begun = performance.now();
    for (const query of this.#queries) {
      const from = performance.now();
      if (from - begun >= limitMs) break;
      found.push(await this.#search([query], k));
      times.push(performance.now() - from);
    }
    this.#found = found;
    return times;
  }

  async batch(k: number, threads: number): Promise<{ queries: number; ms: number; postings: PostingCounts }> {
    this.#kernel.setThreads(threads);
    const begun = performance.now();
    const result = await this.#search(this.#queries, k);
    const ms = performance.now() - begun;
    this.#found = [result];
    return {
      queries: this.#queries.length,
      ms,
      postings: { all: sum(result.postings), read: sum(result.postingsRead) },
    };
  }

  async answer(): Promise<readonly Hits[]> {
    return this.#found.flatMap(hitsOf);
  }

  processBytes(): null {
    return null;
  }

  async close(): Promise<void> {
    await this.#index.close();
  }

  #search(queries: readonly string[], k: number): Promise<LexicalResult> {
    return this.#index.search({ queries, k, parameters: DEFAULT_BM25, signal: this.#signal });
  }
}

function hitsOf({ counts, rows, scores }: LexicalResult): Hits[] {
  const k = rows.length / counts.length;
  const bits = new Uint32Array(scores.buffer, scores.byteOffset, scores.length);
  return Array.from(counts, (count, q) => ({
    rows: Uint32Array.from(rows.subarray(q * k, q * k + count)),
    scoreBits: bits.slice(q * k, q * k + count),
  }));
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}
