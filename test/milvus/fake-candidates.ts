import type { Metric } from '../../src/metric.ts';
import {
  type CandidateSource,
  type Candidates,
  MAX_CANDIDATES,
  MAX_NAMED_ROWS,
  type RowCondition,
} from '../../src/milvus/candidate-source.ts';
import { scoreError, upperNorm } from '../../src/milvus/score-bound.ts';
import type { RowBitmap } from '../../src/row-bitmap.ts';
import { scoreFunction } from '../../src/vector-index/score.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

export interface FakeOptions {
  readonly values: Float32Array;
  readonly dimension: number;
  readonly metric: Metric;
  readonly liveRows?: RowBitmap | undefined;
  /** The share of the bound by which scores are wrong, at random; 1: as wrong as they may be. */
  readonly wrong?: number;
  /** Changes the hits of a search before they are returned. */
  readonly damage?: (candidates: Candidates) => Candidates;
}

/** Ranks rows by scores that are wrong within the bound of float32, and orders ties at random, as Milvus may. */
export class FakeCandidates implements CandidateSource {
  readonly #options: FakeOptions;
  readonly #random = seededRandom(5);
  /** The conditions and limits that were asked for. */
  readonly asked: { readonly condition: RowCondition; readonly limit: number; readonly count: number }[] = [];
  fetched = 0;

  constructor(options: FakeOptions) {
    this.#options = options;
  }

  get rows(): number {
    return this.#options.values.length / this.#options.dimension;
  }

  get largestNorm(): number {
    const { values, dimension } = this.#options;
    let largest = 0;
    for (let at = 0; at < values.length; at += dimension) largest = Math.max(largest, upperNorm(values, at, dimension));
    return largest;
  }

  async search(
    queries: Float32Array,
    { count, limit, condition }: Parameters<CandidateSource['search']>[1],
  ): Promise<Candidates[]> {
    const { values, dimension, metric, liveRows, wrong = 1, damage = (found) => found } = this.#options;
    if (limit > MAX_CANDIDATES) throw new Error(`limit ${limit}`);
    if ('rows' in condition && condition.rows.length > MAX_NAMED_ROWS)
      throw new Error(`${condition.rows.length} rows named`);
    this.asked.push({ condition, limit, count });
    const score = scoreFunction(metric, dimension);
    const named = 'rows' in condition ? new Set(condition.rows) : new Set<number>();
    const passes = (row: number): boolean => {
      if (liveRows?.has(row) === false) return false;
      if (condition.type === 'in') return named.has(row);
      if (condition.type === 'not-in') return !named.has(row);
      return condition.type === 'all' || (row >= condition.first && row < condition.end);
    };
    return Array.from({ length: count }, (_, q) => {
      const queryNorm = upperNorm(queries, q * dimension, dimension);
      const error = scoreError(metric, { dimension, queryNorm, rowNorm: this.largestNorm });
      const hits: { row: number; value: number; order: number }[] = [];
      for (let row = 0; row < this.rows; row++) {
        if (!passes(row)) continue;
        const exact = score(queries, q * dimension, values, row * dimension);
        // As far from the score as is allowed, to either side.
        const value = exact + (this.#random() < 0.5 ? -1 : 1) * error * 0.999 * wrong;
        hits.push({ row, value, order: this.#random() });
      }
      hits.sort((a, b) => b.value - a.value || a.order - b.order);
      const best = hits.slice(0, limit);
      return damage({
        rows: Float64Array.from(best, ({ row }) => row),
        values: Float64Array.from(best, ({ value }) => value),
      });
    });
  }

  async vectors(rows: readonly number[]): Promise<Float32Array> {
    const { values, dimension } = this.#options;
    if (new Set(rows).size !== rows.length) throw new Error('rows repeat');
    this.fetched += rows.length;
    const found = new Float32Array(rows.length * dimension);
    for (const [i, row] of rows.entries())
      found.set(values.subarray(row * dimension, (row + 1) * dimension), i * dimension);
    return found;
  }
}
