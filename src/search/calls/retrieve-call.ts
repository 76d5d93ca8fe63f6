import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { HybridSettings } from '../hybrid/hybrid-settings.ts';
import type { Bm25Order, SearchMode } from '../search-mode.ts';
import type { StageTimings } from '../timings.ts';
import type { AskedQuestion } from './asked-question.ts';
import type { QueryEmbedding, QueryOutcome } from './query-outcome.ts';
import type { RerankSettings } from './rerank-call.ts';
import type { RowScope } from './row-scope.ts';

/**
 * A query with the vector that an earlier call returned, from this retriever or from one with the same encoder and prefix. The
 * retriever searches it again (with a larger k, or in another index) without embedding it. Since it continues an accepted
 * request, statistics do not count it again, and the limit of waiting calls does not apply to it.
 */
export interface EmbeddedQuery {
  readonly input: EncoderInput;
  /** The truncate side it was embedded with; the call's is ignored. */
  readonly truncate: TruncateSide;
  readonly embedding: QueryEmbedding;
  /** One value per dimension of the index; empty for BM25. */
  readonly vector: Float32Array;
}

export type RetrieveQuery = EncoderInput | EmbeddedQuery;

/** A search is exact among the rows of its scope. */
export interface RetrieveCall extends RowScope {
  readonly queries: readonly RetrieveQuery[];
  /** Hits per query, ≥ 1. */
  readonly k: number;
  /** Default: the first of `info.modes`. A mode that the index lacks rejects the call with NOT_SUPPORTED. */
  readonly mode?: SearchMode;
  /**
   * k1, b and the factor k1 + 1 of BM25; for an index with title and text apart, the weights of the fields and the tie breaker.
   * Default: k1 and b of the index, without the factor. Weights for an index of one field reject the call with NOT_SUPPORTED.
   */
  readonly bm25?: Bm25Ranking;
  /** Has no effect on dense and hybrid search. Default: `row`. */
  readonly bm25Order?: Bm25Order;
  /** How hybrid search fuses its lists; no effect in other modes. Default: `hybridSettings({}, 1)`. */
  readonly hybrid?: HybridSettings;
  /**
   * Orders the hits by the scores of the reranker, equal scores by their rank in the search. Rejects with NOT_SUPPORTED without a
   * reranker, with RERANK_TOO_LARGE for too many tokens. Default: no reranking.
   */
  readonly rerank?: RerankSettings;
  /** Which of question, history and query are searched for. Default: the template of the index's encoder, else `question-query`. */
  readonly template?: QueryTemplate;
  /**
   * Whether hits have their document. If false, `document` is empty, and the passages are not read unless the ranking needs them
   * (reranking, the order `pyserini`). Default: true.
   */
  readonly documents?: boolean;
  /** Whether a group answers from the indexes that do not fail. Has no effect on one index. Default: false, the call fails. */
  readonly allowPartial?: boolean;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
  /** One per query: the question that it helps to answer, if the client names it. Perturbation finds gold passages by it. */
  readonly asked?: readonly AskedQuestion[];
  /**
   * For a deeper search of some queries of an earlier call to the same retriever: that call, which continues no other, and the position
   * of each query there. Perturbation treats the queries as those of the earlier call.
   */
  readonly continues?: { readonly call: RetrieveCall; readonly positions: readonly number[] };
  /** Aborting (when the client disconnects) rejects the call with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface RetrieveResult {
  /** One per query, in the order of the queries. */
  readonly outcomes: readonly QueryOutcome[];
  readonly timings: StageTimings;
}
