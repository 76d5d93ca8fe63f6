import { RowBitmap } from '../../engine/row-bitmap.ts';
import { checkScoresFit } from '../../engine/vectors/search-checks.ts';
import { placesPerQuery } from '../../engine/vectors/vector-index.ts';
import type { RowScore, ScoreCall, ScoreOutcome } from '../calls/lookup-calls.ts';
import { type DenseSearch, usableQueries } from '../dense/dense-search.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import type { Stopwatch } from '../timings.ts';

/** The best rows of each query. */
interface Found {
  readonly counts: Uint32Array;
  readonly rows: Float64Array;
  readonly scores: Float64Array | Float32Array;
}

/** Searches all queries among the rows of `filter`, or among all rows. */
type Search = (k: number, filter: RowBitmap | undefined) => Promise<Found>;

interface RowsToScore {
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
 * list. So both are exactly as in a search, ties included. A row that does not count gets the score 0 and no rank, as a deleted one
 * does.
 */
async function scoreRows(search: Search, { rows, among, indexRows, maxRank }: RowsToScore): Promise<RowScore[][]> {
  const chosen = new RowBitmap(indexRows);
  const distinct = new Set(rows.flat().filter((row) => among?.has(row) !== false));
  for (const row of distinct) chosen.add(row);
  if (distinct.size === 0) return rows.map((wanted) => wanted.map(() => ({ score: 0, rank: null })));
  const depth = Math.min(maxRank, indexRows);
  const found = await search(distinct.size, chosen);
  const whole = depth === 0 ? undefined : await search(depth, among);
  return rows.map((wanted, q) => {
    const scores = placesOf(found, q, distinct);
    const ranks = whole === undefined ? undefined : placesOf(whole, q, distinct);
    return wanted.map((row): RowScore => {
      const at = scores.get(row);
      const place = ranks?.get(row);
      return {
        // A row that BM25 does not find has no word of the query. Adding 0 turns −0 into 0, as in a search.
        score: at === undefined ? 0 : Math.fround(found.scores[at]!) + 0,
        rank: place === undefined ? null : place - q * placesPerQuery(whole!) + 1,
      };
    });
  });
}

/** The position in `found` of each of the rows that a query found. */
function placesOf(found: Found, q: number, wanted: ReadonlySet<number>): Map<number, number> {
  const { counts, rows } = found;
  const places = new Map<number, number>();
  const first = q * placesPerQuery(found);
  for (let at = first; at < first + counts[q]!; at++) if (wanted.has(rows[at]!)) places.set(rows[at]!, at);
  return places;
}

interface ScopedRows {
  /** The rows of the call's scope; undefined for all rows. */
  readonly among: RowBitmap | undefined;
  /** Rows of the index, at least 1. */
  readonly indexRows: number;
}

/** The BM25 scores of the passages of a call. */
export async function scoreWords(
  { queries, maxRank, bm25, signal }: ScoreCall,
  { lexical, ...rows }: ScopedRows & { readonly lexical: LexicalSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const texts = queries.map(({ query }) => lexical.textOf(query, undefined));
  const scores = await scoreRows(
    (k, filter) => watch.time('search', () => lexical.search(texts, { k, bm25, filter, signal })),
    { ...rows, rows: queries.map((query) => query.rows), maxRank },
  );
  return scores.map((each) => ({ ok: true, scores: each }));
}

/** The dense scores of the passages of a call. A query that cannot be embedded fails alone. */
export async function scoreVectors(
  { queries, maxRank, truncate, signal }: ScoreCall,
  { dense, ...rows }: ScopedRows & { readonly dense: DenseSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const embedded = await dense.embedQueries({ queries: queries.map(({ query }) => query), truncate, signal }, watch);
  const { index } = dense;
  const vectors = usableQueries(embedded, index.dimension);
  const usable = queries.filter((_, i) => embedded.outcomes[i]!.ok).map((query) => query.rows);
  const scores = await scoreRows(
    async (k, filter) =>
      checkScoresFit(await watch.timeQueued('search', () => index.search({ ...vectors, k, filter, signal }))),
    { ...rows, rows: usable, maxRank },
  );
  let next = 0;
  return embedded.outcomes.map(
    (outcome): ScoreOutcome =>
      outcome.ok ? { ok: true, scores: scores[next++]! } : { ok: false, error: outcome.error },
  );
}
