import type { TrawlError } from '../../base/errors.ts';

export interface RerankList {
  readonly query: string;
  readonly passages: readonly string[];
}

export interface RerankOptions {
  /** Whether scores are the model's output before its activation. Default: false. */
  readonly raw?: boolean;
  /** Aborting drops the pairs that are not being scored yet and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

/** The scores of one list. A list fails as a whole if one of its pairs fails. */
export type RerankOutcome =
  | {
      readonly ok: true;
      /** One per passage, in their order; larger is more relevant. A float32. */
      readonly scores: Float32Array;
      /** Tokens of all pairs, special tokens included; null if the reranker does not say. */
      readonly tokens: number | null;
      /** Pairs that were truncated to the token limit; 0 if the reranker does not say. */
      readonly truncated: number;
    }
  | { readonly ok: false; readonly error: TrawlError };

export interface RerankScores {
  /** One per list, in their order. */
  readonly outcomes: readonly RerankOutcome[];
  /** Time during which none of the pairs was being scored, in milliseconds. */
  readonly waitedMs: number;
}

export interface RerankerInfo {
  /** Name of the model, as requests and replies have it. */
  readonly name: string;
  /** Token limit of a pair, special tokens included; null if it is not known. */
  readonly maxTokens: number | null;
  /** Hash of the model's files; absent if it is not known, as of a server. */
  readonly sha256?: string;
}

/** Scores how relevant passages are to a query, by reading query and passage together. */
export interface Reranker {
  readonly info: RerankerInfo;
  /** Expected time until the waiting pairs are scored, in milliseconds; 0 if it is not known. */
  readonly expectedWaitMs: number;
  score(lists: readonly RerankList[], options?: RerankOptions): Promise<RerankScores>;
  /** Rejects waiting calls, waits for running ones and frees the model. Safe to call twice. */
  close(): Promise<void>;
}

export interface RankedPassage {
  /** Position of the passage in its list, from 0. */
  readonly index: number;
  readonly score: number;
}

/** Passages by score, largest first; equal scores in their order. */
export function rankByScore(scores: ArrayLike<number>): RankedPassage[] {
  return Array.from(scores, (score, index) => ({ index, score })).sort(
    (a, b) => b.score - a.score || a.index - b.index,
  );
}
