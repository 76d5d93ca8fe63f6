import { BM25_PROFILES } from '../../lexical-index/bm25.ts';
import type { Hit, Retriever } from '../../retrieval/retriever.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../retrieval/timings.ts';
import { lexicalTree } from './query/lexical-tree.ts';
import type { SearchRequest } from './search-request.ts';

export interface IndexHit extends Hit {
  readonly index: string;
}

export interface SearchResult {
  /** Indexes searched. */
  readonly indexes: number;
  /** Best first; of equal scores, in the order of the indexes and of their rows. */
  readonly hits: readonly IndexHit[];
  /** Null without a match. */
  readonly best: number | null;
  /** Exact up to `trackTotal` of the request, else more than it. */
  readonly total: number;
  readonly timings: StageTimings;
}

/** Searches one index, or several, whose hits are merged by their scores. */
export async function runSearch(
  retrievers: readonly Retriever[],
  { query, from, size, trackTotal, minScore }: SearchRequest,
  signal: AbortSignal,
): Promise<SearchResult> {
  const isOne = retrievers.length === 1;
  const hits: IndexHit[] = [];
  const best: number[] = [];
  let total = 0;
  let timings = NO_TIMINGS;
  for (const retriever of retrievers) {
    const { info } = retriever;
    const found = await retriever.searchTree({
      query: await lexicalTree(query, { retriever, signal }),
      parameters: BM25_PROFILES.elasticsearch,
      // The hits before `from` of all indexes together are known only after the merge.
      from: isOne ? from : 0,
      size: isOne ? size : from + size,
      count: trackTotal === false ? 0 : Math.max(1, Math.min(trackTotal, info.rows)),
      ...(minScore === undefined ? {} : { minScore }),
      signal,
    });
    hits.push(...found.hits.map((hit) => ({ ...hit, index: info.index })));
    if (found.best !== null) best.push(found.best);
    total += found.total;
    timings = addTimings(timings, found.timings);
  }
  if (!isOne) hits.sort((a, b) => b.score - a.score);
  return {
    indexes: retrievers.length,
    hits: isOne ? hits : hits.slice(from, from + size),
    best: best.length === 0 ? null : Math.max(...best),
    total,
    timings,
  };
}
