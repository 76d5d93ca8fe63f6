import type { TrawlError } from '../../base/errors.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { StageTimings } from '../timings.ts';
import type { RowScope } from './row-scope.ts';

/** Asks for the scores of given passages, which a search may not have found. */
export interface ScoreCall extends RowScope {
  /** Each query with the rows to score. A row outside of the scope, or a deleted one, gets the score 0 and no rank. */
  readonly queries: readonly { readonly query: EncoderInput; readonly rows: readonly number[] }[];
  /** A mode that the index lacks rejects the call with NOT_SUPPORTED. */
  readonly mode: 'dense' | 'bm25';
  /** Ranks up to this one are found, at the cost of a search for that number of hits; 0: none. */
  readonly maxRank: number;
  /** As in a search. */
  readonly bm25?: Bm25Ranking;
  readonly truncate?: TruncateSide;
  readonly signal?: AbortSignal;
}

/** The score of a passage for a query, equal to that of a search in all bits. */
export interface RowScore {
  /** A float32. For BM25 0 if the passage has no word of the query. */
  readonly score: number;
  /** The passage's rank in the scope, from 1; null if it is larger than `maxRank`, or if BM25 does not find the passage. */
  readonly rank: number | null;
}

export type ScoreOutcome =
  | { readonly ok: true; readonly scores: readonly RowScore[] }
  | { readonly ok: false; readonly error: TrawlError };

export interface ScoreResult {
  /** One per query; the scores in the order of its rows. */
  readonly outcomes: readonly ScoreOutcome[];
  readonly timings: StageTimings;
}
