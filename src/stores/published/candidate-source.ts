import type { RowFilters } from '../../engine/columns/row-filters.ts';
import type { Metric } from '../../engine/metric.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';

/** A set of live rows, as stores are asked for it. */
export type RowCondition =
  | { readonly type: 'all' }
  | { readonly type: 'in'; readonly rows: readonly number[] }
  | { readonly type: 'not-in'; readonly rows: readonly number[] }
  /** The rows of [first, end) for which the store's expression of a filter holds. */
  | { readonly type: 'filter'; readonly expression: string; readonly first: number; readonly end: number }
  /** [first, end). */
  | { readonly type: 'range'; readonly first: number; readonly end: number }
  /** The rows of [first, end) in the set. */
  | { readonly type: 'bitmap'; readonly first: number; readonly end: number; readonly set: RowBitmap };

/** The hits of one query, nearest first. */
export interface Candidates {
  readonly rows: Float64Array;
  /** Approximate scores, larger is nearer; of squared distances the negative. */
  readonly values: Float64Array;
  /** The number of rows that meet the condition, if the store counts them. */
  readonly total?: number;
}

/** The first pass of a search: a store that ranks rows by scores of its own, and returns their vectors. */
export interface CandidateSource {
  readonly takesBitmaps: boolean;
  /** The `limit` (at most `MAX_CANDIDATES`) nearest of the rows that meet the condition, for each query; all of them if they are fewer. */
  search(
    queries: Float32Array,
    options: {
      readonly count: number;
      readonly limit: number;
      readonly among: number;
      readonly condition: RowCondition;
      readonly signal?: AbortSignal;
    },
  ): Promise<readonly Candidates[]>;
  /** The number of rows that meet a condition; of a store that evaluates filters. */
  count?(condition: RowCondition, signal?: AbortSignal): Promise<number>;
  /** The vectors of distinct rows, row-major in their order. */
  vectors(rows: readonly number[], signal?: AbortSignal): Promise<Float32Array>;
}

/** The filters that a store can evaluate. Their rows are found here, and the store gets an expression of each filter. */
export interface StoreFilters {
  /** The same filters; remembers the store's expression for each set of rows that they return. */
  watching(filters: RowFilters): RowFilters;
  /** The expression for the live rows among these; undefined unless one filter returned them. */
  expressionOf(rows: RowBitmap): string | undefined;
}

/** What is known of the scores of a store. */
export interface StoreScores {
  /** The name of the store, for messages. */
  readonly store: string;
  /** With l2: the largest norm of a query, and of a row. */
  readonly largestNorm: number;
  /** Whether queries of the other metrics are divided by a power of two, so that no product leaves the range of float32. */
  readonly scalesQueries: boolean;
  /**
   * How far a score of the store can be from the score here.
   *
   * @param norms the norm of the query as sent, and the largest of a row, both rounded up.
   */
  error(
    metric: Metric,
    norms: { readonly dimension: number; readonly queryNorm: number; readonly rowNorm: number },
  ): number;
}

/** The limit of hits per query: the limit of Milvus, and of an index in OpenSearch. */
export const MAX_CANDIDATES = 16_384;
export const MAX_NAMED_ROWS = 4_096;
/** The most rows that a bitmap spans: 32 MiB. */
const MAX_BITMAP_ROWS = 2 ** 28;

/** Rows among which a query is searched: [first, end), with their numbers of live and of allowed rows. */
export interface RowPart {
  readonly first: number;
  readonly end: number;
  readonly live: number;
  readonly allowed: number;
}

/** The condition of the allowed rows: their names or the names of the others, if they are few, or a set. Undefined if none is possible. */
export function allowedCondition(
  { first, end, live, allowed }: RowPart,
  sets: { readonly live: RowBitmap; readonly allowed: RowBitmap },
  takesBitmaps: boolean,
): RowCondition | undefined {
  if (allowed <= MAX_NAMED_ROWS) return { type: 'in', rows: rowsInRange(first, end, sets.allowed) };
  if (takesBitmaps && end - first <= MAX_BITMAP_ROWS) return { type: 'bitmap', first, end, set: sets.allowed };
  const isWhole = first === 0 && end === sets.live.rows;
  if (!isWhole || live - allowed > MAX_NAMED_ROWS) return undefined;
  return { type: 'not-in', rows: rowsInRange(first, end, sets.live).filter((row) => !sets.allowed.has(row)) };
}

export function rowsInRange(first: number, end: number, set: RowBitmap): number[] {
  const rows: number[] = [];
  for (let row = set.next(first); row !== undefined && row < end; row = set.next(row + 1)) rows.push(row);
  return rows;
}
