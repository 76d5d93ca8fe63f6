import type { EncoderLoad } from '../encoder/text-encoder.ts';
import type { SearchLoad } from '../engine/vectors/vector-index.ts';

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
  /** Postings of the queries' terms; those of a query that is searched again count again. */
  readonly postings: number;
  /** Postings that the searches decoded. */
  readonly postingsRead: number;
}

/** Counts of reranking. The pairs are those of this retriever, the expected wait is that of the whole reranker. */
export interface RerankLoad {
  /** Pairs of calls without an answer yet. */
  readonly waitingPairs: number;
  /** Expected time until all waiting pairs are scored, in milliseconds. */
  readonly expectedWaitMs: number;
  /** Lists of hits, or of a request's own texts. */
  readonly lists: number;
  /** Lists that failed. */
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
