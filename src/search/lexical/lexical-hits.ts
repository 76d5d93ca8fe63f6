import type { TrawlError } from '../../base/errors.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { placesPerQuery } from '../../engine/vectors/vector-index.ts';
import type { Hit } from '../calls/query-outcome.ts';
import type { OneAtATime } from '../one-at-a-time.ts';
import { type Documents, hitRows } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';

/** Searches for texts with the ranking of a call. */
export type SearchTexts = (texts: readonly string[], k: number) => Promise<LexicalResult>;

export interface HitsRequest {
  readonly texts: readonly string[];
  readonly k: number;
  /** Rows of the index. */
  readonly rows: number;
  readonly passages: Documents;
  /** Runs the comparisons of long ties of the index (`pyserini-search.ts`). */
  readonly longTies: OneAtATime;
  readonly watch: Stopwatch;
  readonly signal: AbortSignal | undefined;
}

/** Hits of each query, or its error, and what the search cost. */
export interface LexicalHits extends Pick<LexicalResult, 'terms' | 'postings' | 'postingsRead' | 'isExact'> {
  readonly lists: readonly (readonly Hit[] | TrawlError)[];
}

/** The hits in the order of the engine: by score, equal scores by row. */
export async function searchByRow(
  search: SearchTexts,
  { texts, k, passages, watch, signal }: HitsRequest,
): Promise<LexicalHits> {
  const found = await search(texts, k);
  const documents = await watch.time('fetch', () => passages.getMany(hitRows(found), signal));
  let next = 0;
  const places = placesPerQuery(found);
  const lists = Array.from(found.counts, (count, q) =>
    Array.from({ length: count }, (_, i): Hit => {
      const at = q * places + i;
      return { row: found.rows[at]!, score: found.scores[at]!, document: documents[next++]! };
    }),
  );
  return { ...found, lists };
}
