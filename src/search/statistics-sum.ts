import { NO_ENCODER_LOAD } from '../encoder/text-encoder.ts';
import { NO_SEARCH_LOAD } from '../engine/vectors/vector-index.ts';
import type { RetrieverStatistics } from './retriever-statistics.ts';

export const NO_STATISTICS: RetrieverStatistics = Object.freeze({
  encoder: NO_ENCODER_LOAD,
  search: NO_SEARCH_LOAD,
  lexical: { queries: 0, postings: 0, postingsRead: 0 },
  rerank: { waitingPairs: 0, expectedWaitMs: 0, lists: 0, failedLists: 0, pairs: 0, truncatedPairs: 0 },
  waiting: { calls: 0, bytes: 0, maxBytes: 0, refused: 0 },
  sharing: { queries: 0, cached: 0, coalesced: 0, computed: 0, cacheEntries: 0, cacheBytes: 0, cacheMaxBytes: 0 },
});

/**
 * Statistics of a replaced retriever that still has requests, ready to be added to those of its successor. Limits and the
 * encoder's expected wait become 0, because only the successor's count: new queries wait for the successor's encoder, and both
 * retrievers usually share one encoder pool.
 */
export function withoutLimits({
  encoder,
  rerank,
  waiting,
  sharing,
  ...others
}: RetrieverStatistics): RetrieverStatistics {
  return {
    ...others,
    encoder: { ...encoder, expectedWaitMs: 0 },
    rerank: { ...rerank, expectedWaitMs: 0 },
    waiting: { ...waiting, maxBytes: 0 },
    sharing: { ...sharing, cacheMaxBytes: 0 },
  };
}

/** The counts of a closed retriever, without its load. */
export function countsOf({
  encoder,
  search,
  lexical,
  rerank,
  waiting,
  sharing,
}: RetrieverStatistics): RetrieverStatistics {
  return {
    encoder: { ...encoder, waitingTexts: 0, expectedWaitMs: 0 },
    search: { ...search, waitingQueries: 0, expectedWaitMs: 0 },
    lexical,
    rerank: { ...rerank, waitingPairs: 0, expectedWaitMs: 0 },
    waiting: { calls: 0, bytes: 0, maxBytes: 0, refused: waiting.refused },
    sharing: { ...sharing, cacheEntries: 0, cacheBytes: 0, cacheMaxBytes: 0 },
  };
}

export function sumOf(a: RetrieverStatistics, b: RetrieverStatistics): RetrieverStatistics {
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
