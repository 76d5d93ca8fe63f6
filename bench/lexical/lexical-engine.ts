import type { Hits } from './text-file.ts';

/** Programs that Trawl's BM25 is compared with. */
export const BM25_BASELINES = ['lucene', 'bm25s', 'sqlite'] as const;
export type Bm25Baseline = (typeof BM25_BASELINES)[number];

/** A corpus in the forms that the engines read (text-file.ts). */
export interface CorpusFiles {
  readonly name: string;
  readonly rows: number;
  /** Bytes of the passages as UTF-8. */
  readonly textBytes: number;
  /** The passages. */
  readonly texts: string;
  /** The terms of each passage, separated by spaces: for baselines without Lucene's analyser. */
  readonly terms: string;
}

/** Queries in the same two forms. */
export interface QueryFiles {
  readonly name: string;
  readonly queries: readonly string[];
  readonly texts: string;
  readonly terms: string;
}

export interface BuildFigures {
  /** Null for an index that was there. */
  readonly seconds: number | null;
  readonly bytes: number;
  /** Null for an engine that gets ready terms, and for an index that was there. */
  readonly analysisMs: number | null;
  readonly openMs: number;
  /** Null for the baselines. */
  readonly postings: number | null;
}

/** Postings of the terms of some queries, and those that were decoded. */
export interface PostingCounts {
  readonly all: number;
  readonly read: number;
}

/** An engine with an index of one corpus. One call at a time. */
export interface LexicalEngine {
  readonly name: 'trawl' | Bm25Baseline;
  /** Such as `Lucene 9.12.3`. */
  readonly version: string;
  readonly build: BuildFigures;
  /** Resolves to the milliseconds that the analysis of all queries took; null if the engine gets ready terms. */
  useQueries(queries: QueryFiles): Promise<number | null>;
  /** Searches query by query until `limitMs` have passed. Resolves to the milliseconds of each search. */
  lone(k: number, threads: number, limitMs: number): Promise<readonly number[]>;
  /** Searches all queries with `threads` threads, and starts none after `limitMs`. */
  batch(
    k: number,
    threads: number,
    limitMs: number,
  ): Promise<{ queries: number; ms: number; postings?: PostingCounts }>;
  /** The hits of the last search, query by query. */
  answer(): Promise<readonly Hits[]>;
  /** Peak resident memory of the engine's own process; null if it runs in this one, or the system does not tell. */
  processBytes(): number | null;
  close(): Promise<void>;
}
