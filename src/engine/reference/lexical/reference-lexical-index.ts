import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../../base/abort.ts';
import { TrawlError } from '../../../base/errors.ts';
import { RunningCalls } from '../../../base/running-calls.ts';
import { analyser } from '../../lexical/analysis/analysers.ts';
import {
  type Bm25Parameters,
  DEFAULT_BM25,
  type FieldCounts,
  inverseNorms,
  termScore,
  termWeight,
} from '../../lexical/bm25.ts';
import { checkedExplainRequest, checkLexicalRequest } from '../../lexical/lexical-checks.ts';
import type {
  EngineSource,
  ExplainRequest,
  LexicalIndex,
  LexicalRequest,
  LexicalResult,
  TermScore,
} from '../../lexical/lexical-index.ts';
import { type EngineAnalyser, engineAnalyser } from '../../lexical/lexical-settings.ts';
import { TopK } from '../../top-k.ts';
import { LexicalFile } from './lexical-file.ts';
import { emptyResult, setHits } from './result-arrays.ts';

/** Postings scored, and terms looked up, in one time slice of the event loop. */
const POSTINGS_PER_SLICE = 32_768;
const TERMS_PER_SLICE = 256;

interface QueryTerm {
  readonly term: string;
  /** Number of times that the query has the term, or its boost. */
  readonly boost: number;
  readonly documentFrequency: number;
}

/**
 * BM25 search in plain TypeScript, which scores every posting of the query's terms. Tests compare the native engine with it,
 * and it answers searches where the native engine could not be compiled.
 */
export class ReferenceLexicalIndex implements LexicalIndex {
  readonly rows: number;
  readonly analyser: EngineAnalyser;
  readonly counts: FieldCounts;
  readonly mappedBytes: number;
  readonly #source: EngineSource;
  readonly #files: readonly LexicalFile[];
  readonly #deleted: LexicalFile | undefined;
  readonly #calls = new RunningCalls('The index is closed.');

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  constructor(source: EngineSource) {
    this.#source = source;
    this.analyser = source.analyser;
    const opened: LexicalFile[] = [];
    try {
      for (const path of [...source.shards.map((shard) => shard.path), source.deleted]) {
        if (path !== undefined) opened.push(this.#checked(new LexicalFile(path), path));
      }
    } catch (error) {
      for (const file of opened) file.close();
      throw error;
    }
    this.#files = opened.slice(0, source.shards.length);
    this.#deleted = opened[source.shards.length];
    const live = (count: (file: LexicalFile) => number): number =>
      this.#files.reduce((sum, file) => sum + count(file), 0) -
      (this.#deleted === undefined ? 0 : count(this.#deleted));
    this.rows = this.#files.reduce((sum, { rows }) => sum + rows, 0);
    this.counts = { documents: live(({ documents }) => documents), tokens: live(({ tokens }) => tokens) };
    this.mappedBytes = opened.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  search(request: LexicalRequest): Promise<LexicalResult> {
    return this.#calls.run(() => this.#search(request));
  }

  explain(request: ExplainRequest): Promise<TermScore[][]> {
    return this.#calls.run(() => this.#explain(request));
  }

  close(): Promise<void> {
    return this.#calls.close(() => {
      for (const file of [...this.#files, this.#deleted]) file?.close();
    });
  }

  async #explain(request: ExplainRequest): Promise<TermScore[][]> {
    const { signal } = request;
    const { query, rows, parameters, weight, maxTerms } = checkedExplainRequest(request, this.rows);
    const explained = new Map(rows.map((row) => [row, [] as TermScore[]]));
    const times = new Map<number, number>();
    for (const row of rows) times.set(row, (times.get(row) ?? 0) + 1);
    let left = maxTerms;
    for (const { boost, ...rest } of await this.#terms(query, signal)) {
      if (left < 0) break;
      const term = { ...rest, boost: Math.fround(Math.fround(weight) * boost) };
      await this.score(term, parameters, signal, (row, score) => {
        explained.get(row)?.push({ ...term, score });
        left -= times.get(row) ?? 0;
      });
    }
    return rows.map((row) => explained.get(row)!);
  }

  async #search(request: LexicalRequest): Promise<LexicalResult> {
    const { queries, k, parameters = DEFAULT_BM25, signal } = request;
    checkLexicalRequest(request, parameters, this.rows);
    const result = emptyResult(queries.length, k);
    for (const [q, query] of queries.entries()) {
      const terms = await this.#terms(query, signal);
      const sums = new Map<number, number>();
      for (const term of terms) {
        await this.score(term, parameters, signal, (row, score) => {
          sums.set(row, (sums.get(row) ?? 0) + score);
          result.postings[q]!++;
        });
      }
      setHits(result, q, this.#best(sums, request), terms.length);
    }
    return result;
  }

  #best(sums: ReadonlyMap<number, number>, { k, filter }: LexicalRequest): { rows: number[]; scores: number[] } {
    const { liveRows } = this.#source;
    const heap = new TopK(k);
    for (const [row, sum] of sums) {
      if (liveRows?.has(row) !== false && filter?.has(row) !== false) heap.offer(row, Math.fround(sum));
    }
    return heap.sorted();
  }

  /** The distinct terms of a query in the order of their first appearance. */
  async #terms(query: string, signal: AbortSignal | undefined): Promise<QueryTerm[]> {
    const boosts = new Map<string, number>();
    for (const term of analyser(this.analyser)(query)) boosts.set(term, (boosts.get(term) ?? 0) + 1);
    const terms: QueryTerm[] = [];
    for (const [term, boost] of boosts) {
      terms.push({ term, boost, documentFrequency: this.documentFrequency(term) });
      if (terms.length % TERMS_PER_SLICE !== 0) continue;
      await setImmediate();
      throwIfCancelled(signal);
    }
    return terms;
  }

  /** Live rows with the term. */
  documentFrequency(term: string): number {
    const all = this.#files.reduce((sum, file) => sum + file.documentFrequency(term), 0);
    return all - (this.#deleted?.documentFrequency(term) ?? 0);
  }

  /** Calls `onScore` with every row that has the term, deleted ones included. */
  async score(
    { term, boost, documentFrequency }: QueryTerm,
    parameters: Bm25Parameters,
    signal: AbortSignal | undefined,
    onScore: (row: number, score: number) => void,
  ): Promise<void> {
    if (documentFrequency === 0) return;
    const weight = termWeight(parameters, boost, { documentFrequency, documents: this.counts.documents });
    const inverse = inverseNorms(parameters, this.counts);
    let scored = 0;
    for (const [i, file] of this.#files.entries()) {
      const { firstRow } = this.#source.shards[i]!;
      for (const { rows, tfs } of file.postings(term)) {
        for (const [at, row] of rows.entries()) {
          onScore(firstRow + row, termScore(weight, tfs[at]!, inverse[file.lengthCodes[row]!]!));
        }
        scored += rows.length;
        if (scored < POSTINGS_PER_SLICE) continue;
        scored = 0;
        await setImmediate();
        throwIfCancelled(signal);
      }
    }
    throwIfCancelled(signal);
  }

  #checked(file: LexicalFile, path: string): LexicalFile {
    const expected = engineAnalyser(this.analyser);
    if (file.analyser === expected) return file;
    file.close();
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: the file was built with the analyser ${file.analyser}, but ${expected} is expected. ` +
        'Build it again with trawl optimize --bm25.',
    );
  }
}
