import { placesPerQuery, type SearchResult } from '../../engine/vectors/vector-index.ts';

/** The rows of all hits, query after query. */
export function hitRows(found: Pick<SearchResult, 'counts' | 'rows'>): Float64Array {
  const total = found.counts.reduce((sum, count) => sum + count, 0);
  const rows = new Float64Array(total);
  const places = placesPerQuery(found);
  let at = 0;
  for (const [q, count] of found.counts.entries()) {
    rows.set(found.rows.subarray(q * places, q * places + count), at);
    at += count;
  }
  return rows;
}
