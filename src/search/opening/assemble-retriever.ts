import { DEFAULT_MAX_RERANK_TOKENS } from '../../encoder/rerank/pair-budget.ts';
import type { Reranker } from '../../encoder/rerank/reranker.ts';
import { QueuedIndex } from '../dense/queued-index.ts';
import type { AnswerCache } from '../layers/answer-cache.ts';
import { BoundedRetriever, DEFAULT_MAX_WAITING_BYTES } from '../layers/bounded-retriever.ts';
import { RerankingRetriever } from '../layers/reranking-retriever.ts';
import { SharingRetriever } from '../layers/sharing-retriever.ts';
import type { Retriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { RetrieverParts } from '../retriever-parts.ts';
import { SearchRetriever } from '../search-retriever.ts';

export interface ServingOptions {
  /** Cache of finished answers, which several retrievers may share. Default: none. */
  readonly answerCache?: AnswerCache;
  /** Whether equal queries in flight are computed once. Default: true. */
  readonly singleFlight?: boolean;
  /**
   * Limit of the bytes of waiting queries and their expected answers. Above it, calls are refused with OVERLOADED. A low limit
   * refuses bursts that would be answered within seconds; a high limit lets bursts fill the memory. Default: 512 MiB.
   */
  readonly maxWaitingBytes?: number;
  /** Queries of a batch of the vector engine, for throughput; default: as many as keep waits short (`QueuedIndex`). */
  readonly batchQueries?: number;
  /** Reranker, which several retrievers may share and which they do not close. Default: none. */
  readonly reranker?: Reranker;
  /** Limit of the estimated tokens that the reranker reads for one call. Default: 16 Mi (32,768 pairs of 512 tokens). */
  readonly maxRerankTokens?: number;
}

/** Builds a retriever that batches searches, reranks their hits, coalesces equal queries and limits the waiting calls. */
export function assembleRetriever(
  info: RetrieverInfo,
  { dense, ...parts }: RetrieverParts,
  {
    answerCache,
    singleFlight = true,
    maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES,
    batchQueries,
    reranker,
    maxRerankTokens = DEFAULT_MAX_RERANK_TOKENS,
  }: ServingOptions = {},
): Retriever {
  const queued = dense && {
    encoder: dense.encoder,
    index: new QueuedIndex(dense.index, { expectsMore: () => dense.encoder.load.waitingTexts > 0, batchQueries }),
  };
  const direct = new SearchRetriever(info, { dense: queued, ...parts });
  const ranked = reranker === undefined ? direct : new RerankingRetriever(direct, reranker, maxRerankTokens);
  // The limit is outermost because a coalesced call also holds its own queries and its own copy of the answer.
  return new BoundedRetriever(new SharingRetriever(ranked, { answerCache, singleFlight }), maxWaitingBytes);
}
