import { type EncoderLoad, NO_ENCODER_LOAD } from '../encoder/text-encoder.ts';
import { NO_SEARCH_LOAD, type SearchLoad } from '../engine/vectors/vector-index.ts';

/** Current load, and counts since the retriever was opened, for metrics. */
export interface RetrieverStatistics {
  readonly encoder: EncoderLoad;
  readonly search: SearchLoad;
  readonly lexical: LexicalLoad;
  readonly rerank: RerankLoad;
  readonly waiting: WaitingStatistics;
  readonly sharing: SharingStatistics;
}

/** Counts of BM25 searches. */
export interface LexicalLoad {
  readonly queries: number;
  /** Postings of the queries' terms; the postings of a query that is searched again count again. */
  readonly postings: number;
  /** Postings that the searches decoded. */
  readonly postingsRead: number;
}

/** Counts of reranking by this retriever. Only the expected wait covers all users of the reranker. */
export interface RerankLoad {
  /** Pairs of calls without an answer yet. */
  readonly waitingPairs: number;
  /** Expected time until all waiting pairs are scored, in milliseconds. */
  readonly expectedWaitMs: number;
  /** Lists of hits, or of a request's own texts. */
  readonly lists: number;
  readonly failedLists: number;
  /** Pairs of query and passage that were scored. */
  readonly pairs: number;
  /** Of these, pairs that were truncated to the token limit. */
  readonly truncatedPairs: number;
}

export interface WaitingStatistics {
  /** Calls without an answer yet, and the bytes of their queries and expected answers. */
  readonly calls: number;
  readonly bytes: number;
  /** Limit of `bytes`. Above it, calls are refused. */
  readonly maxBytes: number;
  /** Calls refused with OVERLOADED. */
  readonly refused: number;
}

export interface SharingStatistics {
  /**
   * Queries received. Each is also counted as cached, coalesced or computed. A query whose leader failed may be computed
   * several times.
   */
  readonly queries: number;
  readonly cached: number;
  /** Queries answered by an equal query in flight. */
  readonly coalesced: number;
  readonly computed: number;
  /** This retriever's answers in the cache, and their bytes at two per character. */
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  /** Limit of the cache, which several retrievers may share. */
  readonly cacheMaxBytes: number;
}

export const NO_STATISTICS: RetrieverStatistics = Object.freeze({
  encoder: NO_ENCODER_LOAD,
  search: NO_SEARCH_LOAD,
  lexical: { queries: 0, postings: 0, postingsRead: 0 },
  rerank: { waitingPairs: 0, expectedWaitMs: 0, lists: 0, failedLists: 0, pairs: 0, truncatedPairs: 0 },
  waiting: { calls: 0, bytes: 0, maxBytes: 0, refused: 0 },
  sharing: { queries: 0, cached: 0, coalesced: 0, computed: 0, cacheEntries: 0, cacheBytes: 0, cacheMaxBytes: 0 },
});

/**
 * Statistics of a replaced retriever that still has requests, ready to be added to the statistics of its successor. Limits and the
 * encoder's expected wait become 0, because only the successor's count: new queries wait for the successor's encoder, and both
 * retrievers usually share one encoder pool.
 */
export function withoutLimits(current: RetrieverStatistics): RetrieverStatistics {
  return {
    ...current,
    encoder: { ...current.encoder, expectedWaitMs: 0 },
    rerank: { ...current.rerank, expectedWaitMs: 0 },
    waiting: { ...current.waiting, maxBytes: 0 },
    sharing: { ...current.sharing, cacheMaxBytes: 0 },
  };
}

/** The counts of a closed retriever, without its load. */
export function countsOnly(last: RetrieverStatistics): RetrieverStatistics {
  return {
    encoder: { ...last.encoder, waitingTexts: 0, expectedWaitMs: 0 },
    search: { ...last.search, waitingQueries: 0, expectedWaitMs: 0 },
    lexical: last.lexical,
    rerank: { ...last.rerank, waitingPairs: 0, expectedWaitMs: 0 },
    waiting: { calls: 0, bytes: 0, maxBytes: 0, refused: last.waiting.refused },
    sharing: { ...last.sharing, cacheEntries: 0, cacheBytes: 0, cacheMaxBytes: 0 },
  };
}

export function addStatistics(a: RetrieverStatistics, b: RetrieverStatistics): RetrieverStatistics {
  const longer = a.search.batchSizes.length < b.search.batchSizes.length ? b : a;
  const batchSizes = longer.search.batchSizes.map(
    (_, i) => (a.search.batchSizes[i] ?? 0) + (b.search.batchSizes[i] ?? 0),
  );
  return {
    encoder: fieldSums(a.encoder, b.encoder),
    search: { ...fieldSums({ ...a.search, batchSizes: 0 }, { ...b.search, batchSizes: 0 }), batchSizes },
    lexical: fieldSums(a.lexical, b.lexical),
    rerank: fieldSums(a.rerank, b.rerank),
    waiting: fieldSums(a.waiting, b.waiting),
    sharing: fieldSums(a.sharing, b.sharing),
  };
}

function fieldSums<T extends { readonly [name in keyof T]: number }>(a: T, b: T): T {
  return Object.fromEntries(Object.keys(a).map((name) => [name, a[name as keyof T] + b[name as keyof T]])) as T;
}
