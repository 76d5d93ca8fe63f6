import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { TopK } from '../../engine/top-k.ts';
import type { SearchRequest } from '../../engine/vectors/vector-index.ts';
import type { Candidates, StoreScores } from './candidate-source.ts';
import { upperNorm } from './published-row.ts';

/** The vectors of an index, and the bounds of a store's scores. */
export interface ScoredVectors {
  readonly dimension: number;
  readonly metric: Metric;
  /** The largest norm of a row, rounded up. */
  readonly largestNorm: number;
  readonly scores: StoreScores;
}

export interface QuerySearch {
  readonly query: Float32Array;
  readonly sent: Float32Array;
  /** The factor by which a score for `sent` becomes one for `query`. */
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
  { allowed, pushed }: { allowed: RowBitmap; pushed: string | undefined },
): QuerySearch {
  const query = queries.slice(q * dimension, (q + 1) * dimension);
  const scale = metric === 'l2' || !scores.scalesQueries ? 1 : powerOfTwoAbove(query);
  const sent = scale === 1 ? query : query.map((value) => value / scale);
  // A cosine does not change with the length of the query.
  const valueScale = metric === 'inner-product' ? scale : 1;
  const queryNorm = upperNorm(sent);
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

/** Answers a zero query, unless by L2, with the lowest rows, because its score with every row is 0. Returns whether it was answered. */
export function answerZero({ isZero, proof, allowed }: QuerySearch, metric: Metric): boolean {
  if (!isZero || metric === 'l2') return false;
  const rows: number[] = [];
  for (let row = allowed.next(0); row !== undefined && rows.length < proof.k; row = allowed.next(row + 1))
    rows.push(row);
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

/** The state of one query: rows with their scores, candidates without a score, and a bound of the rows that were not returned. */
class QueryProof {
  readonly k: number;
  readonly #error: number;
  readonly #nearest: TopK;
  readonly #seen = new Set<number>();
  /** Nearest first. */
  #pending: { readonly row: number; readonly value: number }[] = [];
  /** The result of `sorted`; undefined after a change, until it is asked for. */
  #best: ReturnType<TopK['sorted']> | undefined;
  rescored = 0;

  /** @param error how far a score can be from its approximate value (`StoreScores`). */
  constructor(k: number, error: number) {
    this.k = k;
    this.#error = error;
    this.#nearest = new TopK(k);
  }

  /** Adds the candidates that may be returned; a row that was added before is skipped. */
  add({ rows, values }: Candidates, mayReturn: (row: number) => boolean): void {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (this.#seen.has(row) || !mayReturn(row)) continue;
      this.#seen.add(row);
      this.#pending.push({ row, value: values[i]! });
    }
    this.#pending.sort((a, b) => b.value - a.value);
  }

  /** The next rows, at most `limit`, whose scores matter; empty once every other candidate is known to be behind the k best. */
  wanted(limit: number): readonly number[] {
    const threshold = this.#threshold();
    // An equal score belongs among the k best if its row is lower, so that only a smaller one is behind.
    const behind = this.#pending.findIndex(({ value }) => value + this.#error < threshold);
    if (behind >= 0) this.#pending.length = behind;
    return this.#pending.slice(0, limit).map(({ row }) => row);
  }

  /** Adds the scores of the rows that `wanted` returned, in their order. */
  accept(scores: readonly number[]): void {
    this.#best = undefined;
    for (const [i, { row }] of this.#pending.splice(0, scores.length).entries()) {
      this.#nearest.offer(row, scores[i]!);
      this.rescored++;
    }
  }

  /** Whether rows whose approximate values are at most `value` are behind the k best. Call it once `wanted` is empty. */
  excludes(value: number): boolean {
    const { scores } = this.sorted();
    return scores.length === this.k && value + this.#error < scores.at(-1)!;
  }

  get found(): number {
    return this.#seen.size;
  }

  sorted(): { readonly rows: readonly number[]; readonly scores: readonly number[] } {
    this.#best ??= this.#nearest.sorted();
    return this.#best;
  }

  /** A lower bound of the k-th best score, by the known scores and the lowest possible scores of candidates. */
  #threshold(): number {
    const lower = this.#pending.slice(0, this.k).map(({ value }) => value - this.#error);
    const all = [...this.sorted().scores, ...lower].sort((a, b) => b - a);
    return all.length < this.k ? Number.NEGATIVE_INFINITY : all[this.k - 1]!;
  }
}
