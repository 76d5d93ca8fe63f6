import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { RowScore } from '../calls/score-call.ts';

/** The best rows of each query, `k` places a query. */
interface Found {
  readonly counts: Uint32Array;
  readonly rows: Float64Array;
  readonly scores: Float64Array | Float32Array;
}

/** Searches all queries among the rows of `filter`, or among all rows. */
type Search = (k: number, filter: RowBitmap | undefined) => Promise<Found>;

export interface RowsToScore {
  /** The rows of each query. */
  readonly rows: readonly (readonly number[])[];
  /** The rows that count; undefined for all rows. */
  readonly among?: RowBitmap;
  /** Rows of the index, at least 1. */
  readonly indexRows: number;
  /** Largest rank to find; 0: none. */
  readonly maxRank: number;
}

/**
 * The scores of chosen rows, by a search among them, and their ranks, by a search among all rows that count: a rank is a place in its
 * list. So both are exactly those of a search, ties included. A row that does not count gets the score 0 and no rank, as a deleted one
 * does.
 */
export async function scoreRows(
  search: Search,
  { rows, among, indexRows, maxRank }: RowsToScore,
): Promise<RowScore[][]> {
  const chosen = new RowBitmap(indexRows);
  const distinct = new Set(rows.flat().filter((row) => among?.has(row) !== false));
  for (const row of distinct) chosen.add(row);
  if (distinct.size === 0) return rows.map((wanted) => wanted.map(() => ({ score: 0, rank: null })));
  const depth = Math.min(maxRank, indexRows);
  const found = await search(distinct.size, chosen);
  const whole = depth === 0 ? undefined : await search(depth, among);
  return rows.map((wanted, q) => {
    const scores = placesOf(found, q, distinct.size, distinct);
    const ranks = whole === undefined ? undefined : placesOf(whole, q, depth, distinct);
    return wanted.map((row): RowScore => {
      const at = scores.get(row);
      const place = ranks?.get(row);
      return {
        // A row that BM25 does not find has no word of the query. Adding 0 turns −0 into 0, as in a search.
        score: at === undefined ? 0 : Math.fround(found.scores[at]!) + 0,
        rank: place === undefined ? null : place - q * depth + 1,
      };
    });
  });
}

/** The position in `found` of each of the rows that a query found. */
function placesOf({ counts, rows }: Found, q: number, k: number, wanted: ReadonlySet<number>): Map<number, number> {
  const places = new Map<number, number>();
  for (let at = q * k; at < q * k + counts[q]!; at++) if (wanted.has(rows[at]!)) places.set(rows[at]!, at);
  return places;
}
