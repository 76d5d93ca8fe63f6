/** A set of rows as Milvus can be asked for it. All are of live rows. */
export type RowCondition =
  | { readonly type: 'all' }
  | { readonly type: 'in'; readonly rows: readonly number[] }
  | { readonly type: 'not-in'; readonly rows: readonly number[] }
  /** The rows of [first, end) for which the expression of a filter holds. */
  | { readonly type: 'filter'; readonly expression: string; readonly first: number; readonly end: number }
  /** [first, end). */
  | { readonly type: 'range'; readonly first: number; readonly end: number };

/** The hits of one query, nearest first. */
export interface Candidates {
  readonly rows: Float64Array;
  /** Approximate scores, larger is nearer; of squared distances the negative. */
  readonly values: Float64Array;
}

/** The first pass of a search: somebody who ranks rows by float32 scores, and returns their vectors. */
export interface CandidateSource {
  /** The `limit` nearest rows of each query among those of the condition, or all if there are fewer. `limit` is at most `MAX_CANDIDATES`. */
  search(
    queries: Float32Array,
    options: {
      readonly count: number;
      readonly limit: number;
      readonly condition: RowCondition;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<readonly Candidates[]>;
  /** How many rows fulfil a condition. */
  count(condition: RowCondition, signal?: AbortSignal): Promise<number>;
  /** The vectors of distinct rows, row-major in their order. */
  vectors(rows: readonly number[], signal?: AbortSignal): Promise<Float32Array>;
}

/** Milvus's limit of hits per query. */
export const MAX_CANDIDATES = 16_384;
/** The most rows that a condition names. */
export const MAX_NAMED_ROWS = 4_096;
