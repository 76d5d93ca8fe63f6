import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import { type DenseSearch, queryOutcomes } from '../dense/dense-search.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import type { FindCall, RowScore, ScoreCall, ScoreOutcome, SelectCall } from '../retriever.ts';
import type { Stopwatch } from '../timings.ts';
import { treeRows } from '../trees/search-tree.ts';
import { type FoundRows, foundFor } from './hit-rows.ts';
import type { RowScopes } from './row-scopes.ts';

interface LookupParts {
  readonly passages: PassageStore;
  readonly rows: RowScopes;
  /** Rows of the index. */
  readonly indexRows: number;
}

/**
 * The first `limit` rows of each key that are live and among the rows of the scope. The passage file also has the others, so a key
 * that got too few is looked up again with four times the limit.
 */
export async function findRows(
  { by, keys, limit, signal }: FindCall,
  among: RowBitmap | undefined,
  { passages, rows, indexRows }: LookupParts,
): Promise<number[][]> {
  if (by === 'row') {
    const numbers = keys.map((key) => (/^\d{1,15}$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY));
    return numbers.map((row) => (row < indexRows && rows.isFound(row, among) ? [row] : []));
  }
  if (rows.live === undefined && among === undefined) return passages.find(by, keys, limit, signal);
  const found: number[][] = keys.map(() => []);
  let open = keys.map((_, i) => i);
  for (let wanted = limit; open.length > 0; wanted *= 4) {
    const looked = open.map((i) => keys[i]!);
    const candidates = await passages.find(by, looked, wanted, signal);
    open = open.filter((i, at) => {
      found[i] = candidates[at]!.filter((row) => rows.isFound(row, among)).slice(0, limit);
      return found[i].length < limit && candidates[at]!.length === wanted;
    });
  }
  return found;
}

/** The live rows that a call asks for, among the rows of its scope. `fields` throws if the index has no inverted index. */
export async function selectRows(
  { ids, query, signal }: SelectCall,
  among: RowBitmap | undefined,
  { passages, rows, indexRows, fields }: LookupParts & { readonly fields: () => LexicalFields },
): Promise<RowBitmap> {
  const selected = new RowBitmap(indexRows);
  if (ids !== undefined) {
    const found = await passages.find('id', ids, indexRows, signal);
    for (const row of found.flat()) if (rows.isFound(row, among)) selected.add(row);
    return selected;
  }
  const found = query === undefined ? selected.complement() : await treeRows(query, fields(), signal);
  const scopes = [among, rows.live].filter((scope) => scope !== undefined);
  return scopes.reduce((passing, scope) => passing.intersection(scope), found);
}

/** Searches all queries among the rows of `filter`, or among all rows. */
type SearchAmong = (k: number, filter: RowBitmap | undefined) => Promise<FoundRows>;

interface RowsToScore {
  /** The rows of each query. */
  readonly rows: readonly (readonly number[])[];
  /** The rows that count; undefined for all rows. */
  readonly among: RowBitmap | undefined;
  /** Rows of the index, at least 1. */
  readonly indexRows: number;
  /** Largest rank to find; 0: none. */
  readonly maxRank: number;
}

/**
 * The scores of chosen rows, by a search among them, and their ranks, by a search among all rows that count: a rank is a place in its
 * list. So both are exactly as in a search, ties included. A row that does not count gets the score 0 and no rank, like a deleted row.
 */
async function scoreRows(search: SearchAmong, { rows, among, indexRows, maxRank }: RowsToScore): Promise<RowScore[][]> {
  const chosen = new RowBitmap(indexRows);
  const distinct = new Set(rows.flat().filter((row) => among?.has(row) !== false));
  for (const row of distinct) chosen.add(row);
  if (distinct.size === 0) return rows.map((wanted) => wanted.map(() => ({ score: 0, rank: null })));
  const depth = Math.min(maxRank, indexRows);
  const found = await search(distinct.size, chosen);
  const whole = depth === 0 ? undefined : await search(depth, among);
  return rows.map((wanted, q) => {
    const { rows: foundRows, scores } = foundFor(found, q);
    const places = placesOf(distinct, foundRows);
    const ranks = whole && placesOf(distinct, foundFor(whole, q).rows);
    return wanted.map((row): RowScore => {
      const place = places.get(row);
      const rank = ranks?.get(row);
      return {
        // A row that BM25 does not find has no word of the query. Adding 0 turns −0 into 0, as in a search.
        score: place === undefined ? 0 : Math.fround(scores[place]!) + 0,
        rank: rank === undefined ? null : rank + 1,
      };
    });
  });
}

/** The place, from 0, of each of the wanted rows in a list that has it. */
function placesOf(wanted: ReadonlySet<number>, list: Float64Array): Map<number, number> {
  const places = new Map<number, number>();
  for (const [place, row] of list.entries()) if (wanted.has(row)) places.set(row, place);
  return places;
}

/** The BM25 scores of the passages of a call. */
export async function scoreWords(
  { queries, maxRank, bm25, signal }: ScoreCall,
  { lexical, ...index }: Pick<RowsToScore, 'among' | 'indexRows'> & { readonly lexical: LexicalSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const texts = queries.map(({ query }) => lexical.queryText(query, undefined));
  const search: SearchAmong = (k, filter) =>
    watch.time('search', () => lexical.search(texts, { k, bm25, filter, signal }));
  const scores = await scoreRows(search, { ...index, rows: queries.map(({ rows }) => rows), maxRank });
  return scores.map((each) => ({ ok: true, scores: each }));
}

/** The dense scores of the passages of a call. A query that cannot be embedded or whose scores overflow fails alone. */
export async function scoreVectors(
  { queries, maxRank, truncate, signal }: ScoreCall,
  { dense, ...index }: Pick<RowsToScore, 'among' | 'indexRows'> & { readonly dense: DenseSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const embedded = await dense.embedQueries({ queries: queries.map(({ query }) => query), truncate, signal }, watch);
  const overflows = new Map<number, number>();
  const search: SearchAmong = async (k, filter) => {
    const found = await watch.timeQueued('search', () => dense.search(embedded, { k, filter, signal }));
    for (const [q, row] of found.overflows ?? []) overflows.set(q, row);
    return found;
  };
  const rows = queries.flatMap((query, i) => (embedded[i]!.ok ? [query.rows] : []));
  const scores = await scoreRows(search, { ...index, rows, maxRank });
  return queryOutcomes(embedded, overflows, (_, q) => ({ ok: true, scores: scores[q]! }));
}
