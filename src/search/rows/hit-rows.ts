import type { PassageStore } from '../../index/passages/passage-store.ts';

/** The documents of rows, as `PassageStore` reads them. */
export type Documents = Pick<PassageStore, 'getMany'>;

/** Reads nothing, for calls without documents: every document is empty. */
export const NO_DOCUMENTS: Documents = {
  getMany: async (rows) => new Array<string>(rows.length).fill(''),
};

/** The rows of all hits, query after query. @param k places of each query in `rows` */
export function hitRows(
  { counts, rows }: { readonly counts: Uint32Array; readonly rows: Float64Array },
  k: number,
): Float64Array {
  const hits = new Float64Array(counts.reduce((sum, count) => sum + count, 0));
  let at = 0;
  for (const [q, count] of counts.entries()) {
    hits.set(rows.subarray(q * k, q * k + count), at);
    at += count;
  }
  return hits;
}
