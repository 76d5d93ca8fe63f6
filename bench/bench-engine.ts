/** Engines that Trawl is timed beside; each has a script bench/baselines/flat_NAME.py. */
export const BASELINES = ['faiss', 'numpy', 'usearch'] as const;
export type BaselineName = (typeof BASELINES)[number];

export interface Answer {
  /** Row numbers, count × k, best first. */
  readonly rows: ArrayLike<number>;
  /** Inner products beside `rows`. */
  readonly scores: ArrayLike<number>;
  /** Exact rows read per query; absent where every row is scored. */
  readonly candidates?: ArrayLike<number>;
  /** Queries for which every row was scored although there were codes. */
  readonly fullScans?: number;
}

export interface TimedAnswer extends Answer {
  /** The search alone, neither loading nor handing over the answer. */
  readonly ms: number;
}

/** An engine with its rows and queries loaded. One call at a time. */
export interface BenchEngine {
  readonly name: 'trawl' | BaselineName;
  /** `faiss-cpu 1.15.1`. */
  readonly version: string;
  /** Searches queries [first, first + count) of the ones loaded. */
  search(first: number, count: number, k: number): Promise<TimedAnswer>;
  /** See "Record fields" of bench/README.md; for the searches since the last call. */
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}
