import type { RetrieverInfo } from '../src/search/retriever-info.ts';

/** The facts of a retriever that a benchmark assembles for dense search alone. */
export function denseInfo(
  facts: Pick<RetrieverInfo, 'index' | 'rows' | 'dimension' | 'metric' | 'generation' | 'model'>,
): RetrieverInfo {
  return {
    ...facts,
    deletedRows: 0,
    modes: ['dense'],
    bm25: null,
    columns: [],
    views: [],
    reranker: null,
    memory: { residentBytes: 0, touchedBytes: 0, mappedBytes: 0, lexicalBytes: 0 },
  };
}
