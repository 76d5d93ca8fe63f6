import type { LexicalResult } from '../../lexical/lexical-index.ts';
import type { TopK } from '../../top-k.ts';

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
export function setHits(result: LexicalResult, q: number, best: ReturnType<TopK['sorted']>, terms: number): void {
  const k = result.rows.length / result.counts.length;
  result.counts[q] = best.rows.length;
  result.rows.set(best.rows, q * k);
  result.scores.set(best.scores, q * k);
  result.terms[q] = terms;
  result.postingsRead[q] = result.postings[q]!;
}
