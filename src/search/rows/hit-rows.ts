import type { SearchResult } from '../../engine/vectors/vector-index.ts';

/** The rows of all hits, query after query. */
export function hitRows(found: Pick<SearchResult, 'counts' | 'rows'>, k: number): Float64Array {
  const total = found.counts.reduce((sum, count) => sum + count, 0);
  const rows = new Float64Array(total);
  let at = 0;
  for (const [q, count] of found.counts.entries()) {
    rows.set(found.rows.subarray(q * k, q * k + count), at);
    at += count;
  }
  return rows;
}
