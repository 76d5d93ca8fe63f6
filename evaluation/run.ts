/** One result of a query. */
export interface RankedPassage {
  /** The passage's id as text. */
  readonly id: string;
  /** Larger is better. Only written down: the rank is the position in the list. */
  readonly score: number;
  /** What the passage says; needed for answer hits only. */
  readonly text?: string;
}

/** Query id → its results, best first. */
export type Run = ReadonlyMap<string, readonly RankedPassage[]>;
