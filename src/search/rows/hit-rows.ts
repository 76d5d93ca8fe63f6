import { placesPerQuery } from '../../engine/vectors/vector-index.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { Hit } from '../calls/query-outcome.ts';
import type { Stopwatch } from '../timings.ts';

/** Reads the documents of rows. */
export type Documents = Pick<PassageStore, 'getMany'>;

/** Reads nothing, for calls without documents: every document is empty. */
export const NO_DOCUMENTS: Documents = { getMany: async (rows) => new Array<string>(rows.length).fill('') };

/** The rows that a search found for each query, laid out as in `SearchResult`. */
export interface FoundRows {
  readonly counts: Uint32Array;
  readonly rows: Float64Array;
  readonly scores: Float64Array | Float32Array;
}

/** The rows of query `q` and their scores, best first. */
export function foundFor({ counts, rows, scores }: FoundRows, q: number) {
  const start = q * placesPerQuery({ counts, rows });
  const end = start + counts[q]!;
  return { rows: rows.subarray(start, end), scores: scores.subarray(start, end) };
}

/** The first `k` rows of each query that are not excluded, from a search for as many rows more as are excluded. */
export function withoutRows<Found extends FoundRows>(found: Found, excluded: ReadonlySet<number>, k: number): Found {
  if (excluded.size === 0) return found;
  const places = Math.min(k, placesPerQuery(found));
  const counts = new Uint32Array(found.counts.length);
  const rows = new Float64Array(counts.length * places).fill(-1);
  const scores = found.scores.slice(0, rows.length);
  for (let q = 0; q < counts.length; q++) {
    const list = foundFor(found, q);
    for (let i = 0; i < list.rows.length && counts[q]! < places; i++) {
      if (excluded.has(list.rows[i]!)) continue;
      const at = q * places + counts[q]!++;
      rows[at] = list.rows[i]!;
      scores[at] = list.scores[i]!;
    }
  }
  return { ...found, counts, rows, scores };
}

/** The hits of each query, with their documents. */
export async function readHits(
  found: FoundRows,
  passages: Documents,
  signal: AbortSignal | undefined,
  watch: Stopwatch,
): Promise<Hit[][]> {
  const lists = Array.from(found.counts, (_, q) => foundFor(found, q));
  const all = new Float64Array(lists.reduce((sum, { rows }) => sum + rows.length, 0));
  let at = 0;
  for (const { rows } of lists) {
    all.set(rows, at);
    at += rows.length;
  }
  const documents = await watch.time('fetch', () => passages.getMany(all, signal));
  let next = 0;
  return lists.map(({ rows, scores }) =>
    Array.from(rows, (row, i): Hit => {
      const document = documents[next++]!;
      const unrounded = scores[i]!;
      // Adding 0 turns −0, to which a tiny negative score rounds, into 0.
      const score = Math.fround(unrounded) + 0;
      return score === unrounded ? { row, score, document } : { row, score, unrounded, document };
    }),
  );
}
