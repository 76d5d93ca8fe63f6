import type { TrawlError } from '../../base/errors.ts';
import type { RerankList, RerankOutcome } from '../../encoder/rerank/reranker.ts';
import type { StageTimings } from '../timings.ts';

/** What the reranker did with the hits of a query. */
export type Reranking =
  | {
      readonly ok: true;
      /** Name of the reranker. */
      readonly model: string;
      /** Passages that it scored. */
      readonly passages: number;
      /** Of these, passages that were truncated to its token limit. */
      readonly truncated: number;
    }
  /** It failed, and the call allows that: the hits are those of the search. */
  | { readonly ok: false; readonly error: TrawlError };

/** Hits that a reranker scores if nothing else is chosen. */
export const DEFAULT_RERANK_DEPTH = 50;

/** How the hits of a search are reranked. */
export interface RerankSettings {
  /** Hits of the search that the reranker scores, ≥ 1; at least k are scored in any case. */
  readonly depth: number;
  /** Name of the reranker. Another name than that of `info.reranker` rejects the call with NOT_SUPPORTED. Default: that one. */
  readonly model?: string;
  /** Whether a query gets the hits of the search if its reranking fails. Default: false, the query fails. */
  readonly allowFailure?: boolean;
}

/** Asks for the scores of texts that need not be passages of the index. */
export interface RerankCall {
  readonly lists: readonly RerankList[];
  /** Whether scores are the model's output before its activation. Default: false. */
  readonly raw?: boolean;
  readonly signal?: AbortSignal;
}

export interface RerankResult {
  /** One per list, in their order. */
  readonly outcomes: readonly RerankOutcome[];
  readonly timings: StageTimings;
}
