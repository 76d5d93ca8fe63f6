import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { SearchRequest } from '../../engine/vectors/vector-index.ts';
import type { StoreScores } from './candidate-source.ts';
import { QueryProof } from './query-proof.ts';
import { upperNorm } from './upper-norm.ts';

/** The vectors of an index, and what is known of a store's scores of them. */
export interface ScoredVectors {
  readonly dimension: number;
  readonly metric: Metric;
  /** The largest norm of a row, rounded up. */
  readonly largestNorm: number;
  readonly scores: StoreScores;
}

/** The search for one query of a request. */
export interface QuerySearch {
  readonly query: Float32Array;
  /** The query as the store gets it. */
  readonly sent: Float32Array;
  /** Factor from the store's scores for `sent` to those for `query`. */
  readonly valueScale: number;
  readonly isZero: boolean;
  readonly allowed: RowBitmap;
  /** The store's expression of the allowed rows. */
  readonly pushed: string | undefined;
  readonly proof: QueryProof;
  searches: number;
}

/**
 * The search for query `q` of a request, before its first call.
 *
 * @throws TrawlError NOT_SUPPORTED for a query whose norm is too large for the scores of the store.
 */
export function querySearch(
  { queries, k }: SearchRequest,
  q: number,
  { dimension, metric, largestNorm, scores }: ScoredVectors,
  { allowed, pushed }: Pick<QuerySearch, 'allowed' | 'pushed'>,
): QuerySearch {
  const query = queries.slice(q * dimension, (q + 1) * dimension);
  const scale = metric === 'l2' || !scores.scalesQueries ? 1 : powerOfTwoAbove(query);
  const sent = scale === 1 ? query : query.map((value) => value / scale);
  // A cosine does not change with the length of the query.
  const valueScale = metric === 'inner-product' ? scale : 1;
  const queryNorm = upperNorm(sent, 0, dimension);
  if (queryNorm > scores.largestNorm) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Query ${q} has a norm of ${queryNorm}; in ${scores.store}, l2 works up to ${scores.largestNorm}. Scale the vectors down.`,
    );
  }
  const error = scores.error(metric, { dimension, queryNorm, rowNorm: largestNorm });
  const proof = new QueryProof(k, error * valueScale);
  return { query, sent, valueScale, isZero: queryNorm === 0, allowed, pushed, proof, searches: 0 };
}

/**
 * Answers a zero query: it has the score 0 with every row except by L2, so that the lowest rows are the answer. Returns whether it was one.
 *
 * @param count the number of allowed rows.
 */
export function answerZero({ isZero, proof, allowed }: QuerySearch, metric: Metric, count: number): boolean {
  if (!isZero || metric === 'l2') return false;
  const rows: number[] = [];
  for (let row = allowed.next(0); row !== undefined && rows.length < Math.min(proof.k, count); ) {
    rows.push(row);
    row = allowed.next(row + 1);
  }
  proof.add({ rows: Float64Array.from(rows), values: new Float64Array(rows.length) }, () => true);
  proof.accept(rows.map(() => 0));
  return true;
}

/** The power of two above the largest value of a vector, so that all its values are below 1 if divided by it; 1 for a zero vector. */
function powerOfTwoAbove(vector: Float32Array): number {
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  return largest === 0 ? 1 : 2 ** (Math.floor(Math.log2(largest)) + 1);
}
