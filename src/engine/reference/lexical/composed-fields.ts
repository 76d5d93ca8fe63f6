import { RunningCalls } from '../../../base/running-calls.ts';
import { analyser } from '../../lexical/analysis/analysers.ts';
import { DEFAULT_BM25 } from '../../lexical/bm25.ts';
import { checkCounting, checkLexicalRequest, checkQueries } from '../../lexical/lexical-checks.ts';
import {
  type LexicalFields,
  type LexicalFieldsRequest,
  type LexicalFieldsResult,
  mappedBytesOf,
} from '../../lexical/lexical-fields.ts';
import type { EngineSource } from '../../lexical/lexical-index.ts';
import type { LexicalField } from '../../lexical/lexical-settings.ts';
import { TopK } from '../../top-k.ts';
import { rewriteQuery } from './composed-rewrite.ts';
import { composedScores, type ScoredIndex } from './composed-scores.ts';
import { nodesOf } from './composed-tree.ts';
import { ReferenceLexicalIndex } from './reference-lexical-index.ts';
import { emptyResult, setHits } from './result-arrays.ts';

/**
 * Query trees in plain TypeScript, which scores every matching row. Tests compare the native engine with it, and it answers
 * searches where the native engine could not be compiled.
 */
export class ReferenceLexicalFields implements LexicalFields {
  readonly rows: number;
  readonly indexes: ReadonlyMap<LexicalField, ReferenceLexicalIndex>;
  readonly mappedBytes: number;
  readonly #source: EngineSource | undefined;
  readonly #calls = new RunningCalls('The index is closed.');

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  constructor(sources: ReadonlyMap<LexicalField, EngineSource>) {
    const indexes = new Map<LexicalField, ReferenceLexicalIndex>();
    try {
      for (const [field, source] of sources) indexes.set(field, new ReferenceLexicalIndex(source));
    } catch (error) {
      for (const index of indexes.values()) void index.close();
      throw error;
    }
    this.indexes = indexes;
    this.#source = [...sources.values()][0];
    this.rows = [...indexes.values()][0]?.rows ?? 0;
    this.mappedBytes = mappedBytesOf(indexes);
  }

  search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      await Promise.all([...this.indexes.values()].map((index) => index.close()));
    });
  }

  async #search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    const { queries, k, parameters = DEFAULT_BM25, signal, count = 0, minScore = Number.NEGATIVE_INFINITY } = request;
    checkLexicalRequest(request, parameters, this.rows);
    checkCounting(request);
    checkQueries(queries, this);
    const { length } = queries;
    const totals = new Float64Array(length);
    const result = { ...emptyResult(length, k), ...(count === 0 ? {} : { totals }) };
    const leastScore = Math.fround(minScore);
    const scored = { ...this.#rowsToSearch(request), indexes: this.indexes, parameters, signal };
    for (const [q, query] of queries.entries()) {
      const terms = new Set<string>();
      const root = nodesOf(
        query,
        (field, text) => analyser(this.indexes.get(field)!.analyser)(text),
        (term) => terms.add(term),
      );
      const onPostings = (postings: number): void => {
        result.postings[q]! += postings;
      };
      const best = new TopK(k);
      for (const [row, score] of await composedScores(rewriteQuery(root), { ...scored, onPostings })) {
        if (score < leastScore) continue;
        best.offer(row, score);
        totals[q] = Math.min(totals[q]! + 1, count + 1);
      }
      setHits(result, q, best.sorted(), terms.size);
    }
    return result;
  }

  #rowsToSearch({ filter }: LexicalFieldsRequest): Pick<ScoredIndex, 'allowed' | 'isAllowed'> {
    const { rows } = this;
    const liveRows = this.#source?.liveRows;
    const isAllowed = (row: number): boolean => liveRows?.has(row) !== false && filter?.has(row) !== false;
    return {
      isAllowed,
      *allowed() {
        for (let row = 0; row < rows; row++) if (isAllowed(row)) yield row;
      },
    };
  }
}
