import type { MiningQuery } from './mining-query.ts';

/** A passage of a training row. */
export interface MinedPassage {
  readonly row: number;
  /** The passage's id; the row number in decimal for a passage without one. */
  readonly id: string;
  /** Empty if there is none. */
  readonly title: string;
  /** The text without the title. */
  readonly text: string;
  /** Title and text. */
  readonly contents: string;
  /** Rank in the raw list, from 1; null for a positive that the list does not have. */
  readonly rank: number | null;
  /** The reranker's score if there is one, else the search's score; larger is nearer. Null: unknown. */
  readonly score: number | null;
}

/** A query with what was mined for it. */
export interface MinedQuery {
  readonly query: MiningQuery;
  /** See `groupKey`. */
  readonly group: string;
  /** The text that was embedded, without the model's prefix. */
  readonly text: string;
  /** At least one, in the order of the judgements. */
  readonly positives: readonly MinedPassage[];
  /** Best first. */
  readonly negatives: readonly MinedPassage[];
}

/** What rows were mined with; stands in each row, or in the file of origins beside them. */
export interface MiningOrigin {
  readonly index: string;
  readonly generation: string;
  /** SHA-256 of the encoder; null for an index without vectors. */
  readonly model: string | null;
  /** Name of the reranker that scored; null without one. */
  readonly reranker: string | null;
}
