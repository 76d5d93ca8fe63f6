import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { HybridSettings } from '../hybrid/hybrid-settings.ts';
import type { Bm25Order, SearchMode } from '../search-mode.ts';
import type { StageTimings } from '../timings.ts';
import type { QueryEmbedding, QueryOutcome } from './query-outcome.ts';

/** What every call of a retriever can have. */
export interface CallOptions {
  /** Aborting (when the client disconnects) rejects the call with CANCELLED. */
  readonly signal?: AbortSignal | undefined;
  /** How long the request of the call may wait. Default: any time. */
  readonly patience?: Patience | undefined;
}

/** How long a request may wait in the queues of an index. Once an index has admitted it, its later calls are not refused there. */
export class Patience {
  readonly maxWaitMs: number;
  readonly #admittedBy = new WeakSet<object>();

  constructor(maxWaitMs: number) {
    this.maxWaitMs = maxWaitMs;
  }

  /** Whether the request may wait this long for an index. If so, later calls of the request may wait there for any time. */
  bears(waitMs: number, index: object): boolean {
    const bears = this.#admittedBy.has(index) || waitMs <= this.maxWaitMs;
    if (bears) this.#admittedBy.add(index);
    return bears;
  }
}

/**
 * The rows that a call may use. All others are treated as if they were deleted: they are not found, not returned and not counted. The
 * statistics of BM25, such as the number of passages with a term, always cover the whole index.
 */
export interface RowScope {
  /**
   * By the columns of the corpus. A column that the index does not have, or a value of another type, rejects the call with
   * INVALID_REQUEST. Default: all rows.
   */
  readonly filter?: Filter;
  /** Names of views: only rows that are in all of them. A view that the index does not have rejects the call with NOT_FOUND. */
  readonly views?: readonly string[];
}

/** The question that a query helps to answer, as its client names it beside the text that is searched for. Never used to search. */
export interface AskedQuestion {
  readonly questionId?: string;
  /** The data set of the id. */
  readonly dataset?: string;
  readonly question?: string;
}

/** Hits that a reranker scores if nothing else is chosen. */
export const DEFAULT_RERANK_DEPTH = 50;

export interface RerankSettings {
  /** Hits of the search that the reranker scores, ≥ 1; at least k are scored in any case. */
  readonly depth: number;
  /** Name of the reranker. A name other than `info.reranker.name` rejects the call with NOT_SUPPORTED. Default: `info.reranker`. */
  readonly model?: string;
  /** Whether a query gets the hits of the search if its reranking fails. Default: false, the query fails. */
  readonly allowFailure?: boolean;
}

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

/** How the passages of a search are ranked. */
export interface Ranking {
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
}

/** A search is exact among the rows of its scope without the excluded ones. */
export interface RetrieveCall extends RowScope, CallOptions, Ranking {
  readonly queries: readonly RetrieveQuery[];
  /** Hits per query, ≥ 1. */
  readonly k: number;
  /** Ids, as text: their passages are left out, as if they were deleted. Default: none. */
  readonly exclude?: readonly string[];
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
  /** One per query: the question that it helps to answer, if the client names it. A search hook may use it. */
  readonly asked?: readonly AskedQuestion[];
  /**
   * For a deeper search of some queries of an earlier call to the same retriever: that call, which continues no other, and the position
   * of each query there. A search hook treats the queries as it treated them in the earlier call.
   */
  readonly continues?: { readonly call: RetrieveCall; readonly positions: readonly number[] };
}

export interface RetrieveResult {
  /** One per query, in the order of the queries. */
  readonly outcomes: readonly QueryOutcome[];
  readonly timings: StageTimings;
}

export interface ScopedCall extends RetrieveCall {
  /** Undefined for all rows. */
  readonly rows: RowBitmap | undefined;
  /** Rows that are left out of the lists, because of their ids. */
  readonly excluded: ReadonlySet<number>;
}

export function isEmbedded(query: RetrieveQuery): query is EmbeddedQuery {
  return typeof query === 'object' && 'vector' in query;
}

/** Whether the query has no vector yet. */
export function isText(query: RetrieveQuery): query is EncoderInput {
  return !isEmbedded(query);
}

export function inputOf(query: RetrieveQuery): EncoderInput {
  return isEmbedded(query) ? query.input : query;
}

/** The query with the vector of its outcome, or unchanged where the outcome has none. */
export function withVector(
  query: RetrieveQuery,
  outcome: QueryOutcome,
  truncate: TruncateSide | undefined,
): RetrieveQuery {
  if (isEmbedded(query) || !outcome.ok || outcome.vector === null) return query;
  const { tokens, truncated, text, cut, vector } = outcome;
  return { input: query, truncate: truncate ?? 'tail', embedding: { tokens, truncated, text, cut }, vector };
}
