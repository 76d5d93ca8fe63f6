import type { Metric } from '../../../src/engine/metric.ts';
import type { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { scoreFunction } from '../../../src/engine/vectors/score.ts';
import {
  type CandidateSource,
  type Candidates,
  MAX_CANDIDATES,
  MAX_NAMED_ROWS,
  type RowCondition,
} from '../../../src/stores/published/candidate-source.ts';
import { upperNorm } from '../../../src/stores/published/published-row.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

export interface FakeOptions {
  readonly values: Float32Array;
  readonly dimension: number;
  readonly metric: Metric;
  readonly liveRows?: RowBitmap;
  /** The share of `worstError` by which scores are wrong, at random to either side; 1: as wrong as they may be. Default: 1. */
  readonly wrong?: number;
  /** Computes scores in float32 as Milvus does, in another order of the sum, instead of changing them at random. */
  readonly float32?: boolean;
  /** Whether conditions may be bitmaps. Default: false. */
  readonly takesBitmaps?: boolean;
  /** Whether a row passes an expression. */
  readonly passes?: (expression: string, row: number) => boolean;
  /** Changes the hits of a search before they are returned. */
  readonly damage?: (candidates: Candidates) => Candidates;
}

/** How far a float32 score can be off, by the number of roundings alone; derived here, so that the bound of the index is not its own proof. */
function worstError(metric: Metric, dimension: number, queryNorm: number, rowNorm: number): number {
  const u = 2 ** -24;
  if (metric === 'inner-product') return dimension * u * queryNorm * rowNorm;
  if (metric === 'l2') return (dimension + 2) * u * (queryNorm + rowNorm) ** 2;
  return 2 * dimension * u + 1e-5;
}

/** A float32 sum in four lanes, from the end. */
function sum32(dimension: number, term: (j: number) => number): number {
  const lanes = new Float32Array(4);
  for (let j = dimension - 1; j >= 0; j--) lanes[j % 4] = lanes[j % 4]! + Math.fround(term(j));
  return Math.fround(Math.fround(lanes[3]! + lanes[2]!) + Math.fround(lanes[1]! + lanes[0]!));
}

/** As Knowhere's NormalizeVec: a vector whose squared norm is within 1e-5 of 1 is left as it is. */
function normalised32(v: Float32Array): Float32Array {
  const square = sum32(v.length, (j) => v[j]! * v[j]!);
  if (square <= 0 || Math.abs(1 - square) <= Math.fround(1e-5)) return v;
  const norm = Math.fround(Math.sqrt(square));
  return v.map((value) => value / norm);
}

/** The score as Milvus computes it. */
function score32(metric: Metric, query: Float32Array, row: Float32Array): number {
  if (metric === 'l2') {
    const differences = query.map((value, j) => value - row[j]!);
    return -sum32(query.length, (j) => differences[j]! * differences[j]!);
  }
  const [a, b] = metric === 'cosine' ? [normalised32(query), normalised32(row)] : [query, row];
  return sum32(query.length, (j) => a[j]! * b[j]!);
}

/** Ranks rows by scores that are wrong as those of float32 can be, and orders ties at random, as Milvus may. */
export class FakeCandidates implements CandidateSource {
  readonly takesBitmaps: boolean;
  readonly #options: FakeOptions;
  readonly #random = seededRandom(5);
  /** The conditions and limits that were asked for. */
  readonly asked: { readonly condition: RowCondition; readonly limit: number; readonly count: number }[] = [];
  readonly counted: RowCondition[] = [];
  fetched = 0;
  /** The most vectors that were fetched at once. */
  fetchedAtOnce = 0;

  constructor(options: FakeOptions) {
    this.#options = options;
    this.takesBitmaps = options.takesBitmaps ?? false;
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
    const { values, dimension, metric, wrong = 1, float32 = false, damage = (found) => found } = this.#options;
    if (limit > MAX_CANDIDATES) throw new Error(`limit ${limit}`);
    if ('rows' in condition && condition.rows.length > MAX_NAMED_ROWS)
      throw new Error(`${condition.rows.length} rows named`);
    this.asked.push({ condition, limit, count });
    const score = scoreFunction(metric, dimension);
    const { largestNorm } = this;
    const passes = this.#test(condition);
    return Array.from({ length: count }, (_, q) => {
      const queryNorm = upperNorm(queries, q * dimension, dimension);
      const query = queries.subarray(q * dimension, (q + 1) * dimension);
      const error = worstError(metric, dimension, queryNorm, largestNorm) * wrong;
      // As far from the score as is allowed, to either side.
      const approximate = (row: number): number =>
        float32
          ? score32(metric, query, values.subarray(row * dimension, (row + 1) * dimension))
          : score(queries, q * dimension, values, row * dimension) + (this.#random() < 0.5 ? -error : error);
      const hits: { row: number; value: number; order: number }[] = [];
      for (let row = 0; row < this.rows; row++) {
        if (!passes(row)) continue;
        hits.push({ row, value: approximate(row), order: this.#random() });
      }
      hits.sort((a, b) => b.value - a.value || a.order - b.order);
      const best = hits.slice(0, limit);
      return damage({
        rows: Float64Array.from(best, ({ row }) => row),
        values: Float64Array.from(best, ({ value }) => value),
      });
    });
  }

  async count(condition: RowCondition): Promise<number> {
    this.counted.push(condition);
    return Array.from({ length: this.rows }, (_, row) => row).filter(this.#test(condition)).length;
  }

  #test(condition: RowCondition): (row: number) => boolean {
    const { liveRows, passes = () => true } = this.#options;
    const named = 'rows' in condition ? new Set(condition.rows) : new Set<number>();
    return (row) => {
      if (liveRows?.has(row) === false) return false;
      if (condition.type === 'in') return named.has(row);
      if (condition.type === 'not-in') return !named.has(row);
      if (condition.type === 'all') return true;
      if (row < condition.first || row >= condition.end) return false;
      if (condition.type === 'bitmap') return condition.set.has(row);
      return condition.type === 'range' || passes(condition.expression, row);
    };
  }

  async vectors(rows: readonly number[]): Promise<Float32Array> {
    const { values, dimension } = this.#options;
    if (new Set(rows).size !== rows.length) throw new Error('rows repeat');
    this.fetched += rows.length;
    this.fetchedAtOnce = Math.max(this.fetchedAtOnce, rows.length);
    const found = new Float32Array(rows.length * dimension);
    for (const [i, row] of rows.entries())
      found.set(values.subarray(row * dimension, (row + 1) * dimension), i * dimension);
    return found;
  }
}
