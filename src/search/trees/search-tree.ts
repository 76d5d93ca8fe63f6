import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { FilterCache } from '../../engine/columns/filter-cache.ts';
import { unknownColumn } from '../../engine/filter/bind-filter.ts';
import { BM25_PROFILES } from '../../engine/lexical/bm25.ts';
import type { LexicalFields, LexicalFieldsRequest, LexicalFieldsResult } from '../../engine/lexical/lexical-index.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import { compareOrder, type OrderValue, type TreeCall, type TreeOrder, type TreeResult } from '../calls/tree-call.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { LexicalLoad } from '../retriever-statistics.ts';
import type { Stopwatch } from '../timings.ts';

interface TreeParts {
  readonly info: Pick<RetrieverInfo, 'index' | 'columns'>;
  readonly lexical: LexicalFields;
  /** Absent if the index has no columns. */
  readonly columns: Pick<FilterCache, 'extremes'> | undefined;
  /** The rows that may be found; undefined: all. */
  readonly filter: RowBitmap | undefined;
  readonly passages: PassageStore;
  readonly watch: Stopwatch;
}

/** Searches for a query tree and fetches the passages of the hits after the first `from`. */
export async function searchTree(
  call: TreeCall,
  parts: TreeParts,
): Promise<Omit<TreeResult, 'timings'> & { readonly load: LexicalLoad }> {
  const { order, count, signal } = call;
  const { passages, watch } = parts;
  const { found, total, hits } = await (order === undefined ? byScore(call, parts) : inOrder(call, order, parts));
  const documents = await watch.time('fetch', () =>
    passages.getMany(
      hits.map(({ row }) => row),
      signal,
    ),
  );
  return {
    hits: hits.map((hit, i) => ({ ...hit, document: documents[i]! })),
    best: found.counts[0] === 0 ? null : found.scores[0]!,
    total: count === 0 ? 0 : Math.min(total, count + 1),
    load: { queries: 1, postings: found.postings[0]!, postingsRead: found.postingsRead[0]! },
  };
}

/** The matches that a search returned, their number, and the hits of the call's page. */
interface Found {
  readonly found: LexicalFieldsResult;
  readonly total: number;
  readonly hits: readonly {
    readonly row: number;
    readonly score: number;
    readonly orderValues?: readonly OrderValue[];
  }[];
}

async function byScore(call: TreeCall, { lexical, filter, watch }: TreeParts): Promise<Found> {
  const { query, parameters, from, size, count, minScore, signal } = call;
  const tree = size > 0 || minScore !== undefined ? query : unscored(query);
  // The engine allocates memory for k hits.
  const k = Math.max(1, Math.min(from + size, lexical.rows));
  const request = { queries: [tree], k, parameters, count, minScore, filter, signal };
  const found = await watch.time('search', () => lexical.search(request));
  const rows = size === 0 ? [] : [...found.rows.subarray(from, found.counts[0]!)];
  const hits = rows.map((row, i) => ({ row, score: found.scores[from + i]! }));
  return { found, total: found.totals?.[0] ?? 0, hits };
}

/** Most matches that a search in an order other than by score may have: their values are compared on the event loop. */
const MAX_ORDERED_ROWS = 1_000_000;

async function inOrder(call: TreeCall, order: readonly TreeOrder[], parts: TreeParts): Promise<Found> {
  const { query, parameters, from, size, minScore, after, scored = false, signal } = call;
  const { lexical, filter, watch, info } = parts;
  const isScored = scored || minScore !== undefined || order.some(({ by }) => by === 'score');
  if (!isScored && order.length === 1 && order[0]!.by === 'row' && !order[0]!.descending)
    return inRowOrder(call, parts);
  const request = { queries: [isScored ? query : unscored(query)], parameters, minScore, filter, signal };
  const found = await watch.time('search', () => allMatches(lexical, request, MAX_ORDERED_ROWS));
  if (found === undefined) {
    throw new TrawlError(
      'INVALID_REQUEST',
      `More than ${MAX_ORDERED_ROWS} passages of ${info.index} match; that many can be ordered only by score. Narrow the query, or order by score.`,
      { details: { limit: MAX_ORDERED_ROWS } },
    );
  }
  const rows = found.rows.subarray(0, found.counts[0]!);
  const values = await watch.time('search', () => orderValues(order, { rows, scores: found.scores }, call, parts));
  const valuesAt = (place: number): readonly OrderValue[] => values.map((each) => each[place]!);
  const isAfter = (place: number): boolean => after === undefined || compareOrder(order, valuesAt(place), after) > 0;
  const compare = (a: number, b: number): number =>
    compareOrder(order, valuesAt(a), valuesAt(b)) || rows[a]! - rows[b]!;
  const slice = new TimeSlice(signal);
  const places = await watch.time('search', () => firstPlaces(rows.length, from + size, isAfter, compare, slice));
  const hits = places
    .slice(from)
    .map((place) => ({ row: rows[place]!, score: found.scores[place]!, orderValues: valuesAt(place) }));
  return { found, total: rows.length, hits };
}

/** As `inOrder` for ascending rows, of any number: the engine returns matches of equal score in the order of their rows. */
async function inRowOrder(call: TreeCall, { lexical, filter, watch }: TreeParts): Promise<Found> {
  const { query, parameters, from, size, count, after, signal } = call;
  const request = { queries: [unscored(query)], parameters, signal };
  const [last = null] = after ?? [];
  const rest = last === null ? filter : RowBitmap.from(lexical.rows, Math.floor(Number(last)) + 1, filter);
  const k = Math.max(1, Math.min(from + size, lexical.rows));
  const found = await watch.time('search', () => lexical.search({ ...request, k, count, filter: rest }));
  const all = rest === filter || count === 0 ? found : await lexical.search({ ...request, k: 1, count, filter });
  const rows = size === 0 ? [] : [...found.rows.subarray(from, found.counts[0]!)];
  const hits = rows.map((row, i) => ({ row, score: found.scores[from + i]!, orderValues: [row] }));
  return { found, total: all.totals?.[0] ?? 0, hits };
}

/** For each criterion, the values of the rows. */
async function orderValues(
  order: readonly TreeOrder[],
  { rows, scores }: { readonly rows: Float64Array; readonly scores: Float32Array },
  { signal }: TreeCall,
  { info, columns }: TreeParts,
): Promise<readonly ArrayLike<OrderValue>[]> {
  const values: ArrayLike<OrderValue>[] = [];
  for (const { by, descending, which, missing = 'last' } of order) {
    if (typeof by === 'string') {
      values.push(by === 'nothing' ? new Array<null>(rows.length).fill(null) : by === 'score' ? scores : rows);
      continue;
    }
    const column = info.columns.findIndex(({ name }) => name === by.column);
    if (column < 0 || columns === undefined) throw unknownColumn(by.column, info.columns, info.index);
    const extreme = which ?? (descending ? 'most' : 'least');
    const found = await columns.extremes(column, { rows, which: extreme, signal });
    const absent = typeof missing === 'object' ? missing.value : null;
    values.push(found.map((value) => value ?? absent));
  }
  return values;
}

/** Places between two checks of the time slice. */
const PLACES_AT_ONCE = 512;

/** The first `wanted` of the places below `count`, in order. */
async function firstPlaces(
  count: number,
  wanted: number,
  isAfter: (place: number) => boolean,
  compare: (a: number, b: number) => number,
  slice: TimeSlice,
): Promise<number[]> {
  let first: number[] = [];
  let worst: number | undefined;
  const cut = (): void => {
    first = first.sort(compare).slice(0, wanted);
    worst = first.length === wanted ? first.at(-1) : undefined;
  };
  for (let place = 0; place < count; place++) {
    if (place % PLACES_AT_ONCE === 0 && slice.isOver) await slice.yield();
    if (!isAfter(place) || (worst !== undefined && compare(place, worst) > 0)) continue;
    first.push(place);
    if (first.length >= 2 * wanted + PLACES_AT_ONCE) cut();
  }
  cut();
  return first;
}

/** Matches that are asked for at first; most queries have fewer. */
const FIRST_MATCHES = 1 << 14;

/** All matches of a query; undefined if there are more than `most`. */
async function allMatches(
  lexical: LexicalFields,
  request: Omit<LexicalFieldsRequest, 'k' | 'count'>,
  most: number,
): Promise<LexicalFieldsResult | undefined> {
  const limit = Math.max(1, Math.min(lexical.rows, most));
  const first = { ...request, k: Math.min(limit, FIRST_MATCHES), count: limit };
  const found = await lexical.search(first);
  const total = found.totals?.[0] ?? 0;
  if (total > most) return undefined;
  return total > found.counts[0]! ? lexical.search({ ...first, k: total }) : found;
}

/** The same matches without the work of scoring them. */
function unscored(query: LexicalQuery): LexicalQuery {
  return { type: 'constant-score', query };
}

/** Most rows that a query of words may match. The engine returns them as a list with scores, which takes memory. */
const MAX_LISTED_ROWS = 4_000_000;
/** Rows between two checks of the time slice. */
const ROWS_AT_ONCE = 1 << 14;

/**
 * The rows that a query tree matches. Sets of rows are combined as sets; words need a search.
 *
 * @throws TrawlError INVALID_REQUEST if a query of words matches more than `MAX_LISTED_ROWS` rows.
 */
export async function treeRows(
  query: LexicalQuery,
  lexical: LexicalFields,
  signal: AbortSignal | undefined,
): Promise<RowBitmap> {
  const combined = combinedSets(query, lexical.rows);
  if (combined !== undefined) return combined;
  const request = { queries: [unscored(query)], parameters: BM25_PROFILES.elasticsearch, signal };
  const found = await allMatches(lexical, request, MAX_LISTED_ROWS);
  if (found === undefined) {
    throw new TrawlError(
      'INVALID_REQUEST',
      `A filter by words matches more than ${MAX_LISTED_ROWS} passages, the limit of such filters. Filter by columns instead; they have no limit.`,
      { details: { limit: MAX_LISTED_ROWS } },
    );
  }
  const set = new RowBitmap(lexical.rows);
  const slice = new TimeSlice(signal);
  for (let i = 0; i < found.counts[0]!; i++) {
    if (i % ROWS_AT_ONCE === 0 && slice.isOver) await slice.yield();
    set.add(found.rows[i]!);
  }
  return set;
}

/** The rows of a tree that has only sets; undefined if it has words. */
function combinedSets(query: LexicalQuery, rows: number): RowBitmap | undefined {
  switch (query.type) {
    case 'rows':
      return query.rows;
    case 'match-none':
      return new RowBitmap(rows);
    case 'match-all':
      return new RowBitmap(rows).complement();
    case 'constant-score':
      return combinedSets(query.query, rows);
    case 'bool': {
      const { must = [], filter = [], mustNot = [], should = [], minimumShouldMatch = 0 } = query;
      const required = [...must, ...filter];
      if (required.length === 0 || (should.length > 0 && minimumShouldMatch > 0)) return undefined;
      let result: RowBitmap | undefined;
      for (const [i, clause] of [...required, ...mustNot].entries()) {
        const found = combinedSets(clause, rows);
        if (found === undefined) return undefined;
        const passing = i < required.length ? found : found.complement();
        result = result === undefined ? passing : result.intersection(passing);
      }
      return result;
    }
    default:
      return undefined;
  }
}
