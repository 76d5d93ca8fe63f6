import { throwIfCancelled } from '../../../base/abort.ts';
import { TrawlError } from '../../../base/errors.ts';
import { RunningCalls } from '../../../base/running-calls.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
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
import type { EngineAnalyser } from '../../lexical/lexical-settings.ts';
import { TopK } from '../../top-k.ts';
import { LexicalFile } from './lexical-file.ts';

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
  readonly counts: FieldCounts;
  readonly mappedBytes: number;
  readonly #source: EngineSource;
  readonly #files: readonly LexicalFile[];
  readonly #deleted: LexicalFile | undefined;
  readonly #calls = new RunningCalls('The index is closed.');

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  constructor(source: EngineSource) {
    this.#source = source;
    const opened: LexicalFile[] = [];
    try {
      for (const path of [...source.shards.map((shard) => shard.path), source.deleted]) {
        if (path !== undefined) opened.push(openFile(path, source.analyser));
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
    const slice = new TimeSlice(signal);
    for (const { boost, ...rest } of await this.#terms(query, slice)) {
      if (left < 0) break;
      const term = { ...rest, boost: Math.fround(Math.fround(weight) * boost) };
      await this.score(term, parameters, slice, (row, score) => {
        explained.get(row)?.push({ ...term, score });
        left -= times.get(row) ?? 0;
      });
    }
    throwIfCancelled(signal);
    return rows.map((row) => explained.get(row)!);
  }

  async #search(request: LexicalRequest): Promise<LexicalResult> {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal } = request;
    const { liveRows } = this.#source;
    checkLexicalRequest(request, this.rows);
    const result = emptyResult(queries.length, k);
    const slice = new TimeSlice(signal);
    for (const [q, query] of queries.entries()) {
      const terms = await this.#terms(query, slice);
      const sums = new Map<number, number>();
      for (const term of terms) {
        await this.score(term, parameters, slice, (row, score) => {
          sums.set(row, (sums.get(row) ?? 0) + score);
          result.postings[q]!++;
        });
      }
      const best = new TopK(k);
      for (const [row, sum] of sums) {
        if (liveRows?.has(row) !== false && filter?.has(row) !== false) best.offer(row, Math.fround(sum));
      }
      setHits(result, q, best, terms.length);
    }
    throwIfCancelled(signal);
    return result;
  }

  /** The distinct terms of a query in the order of their first appearance. */
  async #terms(query: string, slice: TimeSlice): Promise<QueryTerm[]> {
    const boosts = new Map<string, number>();
    for (const term of analyser(this.#source.analyser)(query)) boosts.set(term, (boosts.get(term) ?? 0) + 1);
    const terms: QueryTerm[] = [];
    for (const [term, boost] of boosts) {
      terms.push({ term, boost, documentFrequency: this.documentFrequency(term) });
      if (slice.isOver) await slice.yield();
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
    slice: TimeSlice,
    onScore: (row: number, score: number) => void,
  ): Promise<void> {
    if (documentFrequency === 0) return;
    const weight = termWeight(parameters, boost, { documentFrequency, documents: this.counts.documents });
    const inverse = inverseNorms(parameters, this.counts);
    for (const [i, file] of this.#files.entries()) {
      const { firstRow } = this.#source.shards[i]!;
      for (const { rows, tfs } of file.postings(term)) {
        for (const [at, row] of rows.entries()) {
          onScore(firstRow + row, termScore(weight, tfs[at]!, inverse[file.lengthCodes[row]!]!));
        }
        if (slice.isOver) await slice.yield();
      }
    }
    if (slice.isOver) await slice.yield();
  }
}

/** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
function openFile(path: string, analyser: EngineAnalyser): LexicalFile {
  const file = new LexicalFile(path);
  if (file.analyser === analyser) return file;
  file.close();
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${path}: the file was built with the analyser ${file.analyser}, but the manifest says ${analyser}. Build it again with ` +
      'trawl optimize --bm25.',
  );
}

/** The result of a search without hits, to be filled query by query. */
export function emptyResult(queries: number, k: number): LexicalResult {
  return {
    counts: new Uint32Array(queries),
    rows: new Float64Array(queries * k).fill(-1),
    scores: new Float32Array(queries * k),
    terms: new Uint32Array(queries),
    postings: new Float64Array(queries),
    postingsRead: new Float64Array(queries),
  };
}

/** Writes the hits of query `q` and the number of its terms. The reference reads every posting. */
export function setHits(result: LexicalResult, q: number, best: TopK, terms: number): void {
  const k = result.rows.length / result.counts.length;
  const { rows, scores } = best.sorted();
  result.counts[q] = rows.length;
  result.rows.set(rows, q * k);
  result.scores.set(scores, q * k);
  result.terms[q] = terms;
  result.postingsRead[q] = result.postings[q]!;
}
