import type { RowFilters } from '../../engine/columns/row-filters.ts';
import type { Metric } from '../../engine/metric.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';

/** A set of rows as a store can be asked for it. All are of live rows. */
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
  /** Rows that fulfil the condition, where the store counts them. */
  readonly total?: number;
}

/** The first pass of a search: a store that ranks rows by scores of its own, and returns their vectors. */
export interface CandidateSource {
  /** Whether conditions may be bitmaps. */
  readonly takesBitmaps: boolean;
  /**
   * The `limit` nearest rows of each query among the rows that meet the condition, or all of them if there are
   * fewer. `limit` is at most `MAX_CANDIDATES`.
   */
  search(
    queries: Float32Array,
    options: {
      readonly count: number;
      readonly limit: number;
      /** Rows that fulfil the condition. */
      readonly among: number;
      readonly condition: RowCondition;
      readonly signal?: AbortSignal;
    },
  ): Promise<readonly Candidates[]>;
  /** How many rows fulfil a condition, in a store that evaluates filters. */
  count?(condition: RowCondition, signal?: AbortSignal): Promise<number>;
  /** The vectors of distinct rows, row-major in their order. */
  vectors(rows: readonly number[], signal?: AbortSignal): Promise<Float32Array>;
}

/** The filters that a store can evaluate. Their rows are found here; the store gets its expressions of them. */
export interface StoreFilters {
  /** The same filters; remembers the store's expression of each set of rows that they give. */
  watching(filters: RowFilters): RowFilters;
  /** The expression of the live rows among these; undefined for rows that no filter alone gave. */
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
/** The most rows that a condition names. */
export const MAX_NAMED_ROWS = 4_096;
/** The most rows that a bitmap spans: 32 MiB. */
export const MAX_BITMAP_ROWS = 2 ** 28;
