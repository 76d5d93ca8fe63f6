import type { RetrieverStatistics } from './retriever.ts';

export const NO_STATISTICS: RetrieverStatistics = Object.freeze({
  encoder: { waitingTexts: 0, expectedWaitMs: 0, texts: 0, droppedTexts: 0, chunks: 0 },
  search: {
    waitingQueries: 0,
    expectedWaitMs: 0,
    queries: 0,
    droppedQueries: 0,
    batches: 0,
    batchSizes: [],
    rescoredRows: 0,
    fullScans: 0,
  },
  waiting: { calls: 0, bytes: 0, maxBytes: 0, refused: 0 },
  sharing: { queries: 0, cached: 0, joined: 0, computed: 0, cacheEntries: 0, cacheBytes: 0, cacheMaxBytes: 0 },
});

/** Of a retriever that was replaced: what it counted and what still waits in it, without the bounds, which are its successor's. */
export function withoutBounds({ waiting, sharing, ...others }: RetrieverStatistics): RetrieverStatistics {
  return { ...others, waiting: { ...waiting, maxBytes: 0 }, sharing: { ...sharing, cacheMaxBytes: 0 } };
}

/** Of a retriever that is closed: what it counted. Nothing waits in it. */
export function countsOf({ encoder, search, waiting, sharing }: RetrieverStatistics): RetrieverStatistics {
  return {
    encoder: { ...encoder, waitingTexts: 0, expectedWaitMs: 0 },
    search: { ...search, waitingQueries: 0, expectedWaitMs: 0 },
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
    waiting: fieldSums(a.waiting, b.waiting),
    sharing: fieldSums(a.sharing, b.sharing),
  };
}

function fieldSums<T extends { readonly [name in keyof T]: number }>(a: T, b: T): T {
  return Object.fromEntries(Object.keys(a).map((name) => [name, a[name as keyof T] + b[name as keyof T]])) as T;
}
