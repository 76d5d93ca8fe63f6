import { placesPerQuery } from '../../engine/vectors/vector-index.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';

/** The documents of rows, as `PassageStore` reads them. */
export type Documents = Pick<PassageStore, 'getMany'>;

/** Reads nothing, for calls without documents: every document is empty. */
export const NO_DOCUMENTS: Documents = {
  getMany: async (rows) => new Array<string>(rows.length).fill(''),
};

/** The rows of all hits, query after query. */
export function hitRows(found: { readonly counts: Uint32Array; readonly rows: Float64Array }): Float64Array {
  const { counts, rows } = found;
  const places = placesPerQuery(found);
  const hits = new Float64Array(counts.reduce((sum, count) => sum + count, 0));
  let at = 0;
  for (const [q, count] of counts.entries()) {
    hits.set(rows.subarray(q * places, q * places + count), at);
    at += count;
  }
  return hits;
}
