/** One result of a query. */
export interface RankedPassage {
  /** Id of the passage, as a string. */
  readonly id: string;
  /** Larger is nearer. Written to run files; the metrics use the position in the list as the rank. */
  readonly score: number;
  /** The passage without its title; only needed for `answer_hit@k` and its kin. */
  readonly text?: string;
  /** Title of the page that the passage is from; only needed for `title_recall@k` and its kin. A passage without title has no page. */
  readonly title?: string;
}

/** Query id → its results, best first. */
export type Run = ReadonlyMap<string, readonly RankedPassage[]>;
