/** The engines that Trawl is compared with. bench/baselines/flat_NAME.py runs each. */
export const BASELINES = ['faiss', 'numpy', 'usearch'] as const;
export type BaselineName = (typeof BASELINES)[number];

export interface Answer {
  /** Row numbers, count × k, best first. */
  readonly rows: ArrayLike<number>;
  /** The inner product of each row. */
  readonly scores: ArrayLike<number>;
  /** Rows with an exact score, per query; absent if the engine scores every row. */
  readonly candidates?: ArrayLike<number>;
  /** Queries for which the engine scored every row although it has codes. */
  readonly fullScans?: number;
}

export interface TimedAnswer extends Answer {
  /** Time of the search itself, without loading and without sending the answer to this process. */
  readonly ms: number;
}

/** An engine with its rows and queries loaded. One call at a time. */
export interface FlatEngine {
  readonly name: 'trawl' | BaselineName;
  /** Such as `faiss-cpu 1.15.1`. */
  readonly version: string;
  /** Searches for the loaded queries [first, first + count). */
  search(first: number, count: number, k: number): Promise<TimedAnswer>;
  /** For the searches since the last call; see "Record fields" in bench/search.md. */
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}
