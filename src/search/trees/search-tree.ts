import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { FilterCache } from '../../engine/columns/filter-cache.ts';
import { unknownColumn } from '../../engine/filter/bind-filter.ts';
import type { LexicalFields, LexicalFieldsResult } from '../../engine/lexical/lexical-fields.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import {
  compareOrder,
  type OrderValue,
  type TreeCall,
  type TreeHit,
  type TreeOrder,
  type TreeResult,
} from '../calls/tree-call.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { LexicalLoad } from '../retriever-statistics.ts';
import type { Stopwatch } from '../timings.ts';

export interface TreeParts {
  readonly info: Pick<RetrieverInfo, 'index' | 'columns'>;
  readonly lexical: LexicalFields;
  /** Absent if the index has no columns. */
  readonly columns: Pick<FilterCache, 'extremes'> | undefined;
  /** The rows that may be found; undefined: all. */
  readonly filter: RowBitmap | undefined;
  readonly passages: PassageStore;
  readonly watch: Stopwatch;
}

type Found = Omit<TreeResult, 'timings'> & { readonly load: LexicalLoad };

/** Searches for a query tree and fetches the passages of the hits after the first `from`. */
export function searchTree(call: TreeCall, parts: TreeParts): Promise<Found> {
  return call.order === undefined ? searchByScore(call, parts) : searchInOrder(call, call.order, parts);
}

async function searchByScore(call: TreeCall, parts: TreeParts): Promise<Found> {
  const { query, from, size, count, minScore, signal } = call;
  const { lexical, passages, watch } = parts;
  const isScored = size > 0 || minScore !== undefined;
  // The engine allocates memory for k hits.
  const k = Math.max(1, Math.min(from + size, lexical.rows));
  const found = await search(isScored ? query : unscored(query), { k, count }, call, parts);
  const rows = size === 0 ? new Float64Array(0) : found.rows.subarray(from, found.counts[0]!);
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  return {
    hits: documents.map((document, i) => ({ row: rows[i]!, score: found.scores[from + i]!, document })),
    best: found.counts[0] === 0 ? null : found.scores[0]!,
    total: found.totals?.[0] ?? 0,
    load: loadOf(found),
  };
}

/** Matching rows that a search in an order other than by score may have: their values are compared on the event loop. */
const MAX_ORDERED_ROWS = 1_000_000;
/** Matching rows that are asked for at first. */
const FIRST_ROWS = 1 << 14;

async function searchInOrder(call: TreeCall, order: readonly TreeOrder[], parts: TreeParts): Promise<Found> {
  const { query, from, size, count, minScore, after, scored = false, signal } = call;
  const { lexical, passages, watch, info } = parts;
  const isScored = scored || minScore !== undefined || order.some(({ by }) => by === 'score');
  const tree = isScored ? query : unscored(query);
  const limit = Math.min(lexical.rows, MAX_ORDERED_ROWS);
  const counted = { k: Math.max(1, Math.min(limit, FIRST_ROWS)), count: Math.max(1, limit) };
  let found = await search(tree, counted, call, parts);
  const total = found.totals?.[0] ?? 0;
  if (total > MAX_ORDERED_ROWS) throw tooManyRows(info.index);
  if (total > found.counts[0]!) found = await search(tree, { ...counted, k: total }, call, parts);
  const rows = found.rows.subarray(0, found.counts[0]!);
  const keys = await watch.time('search', () => orderValues(order, { rows, scores: found.scores }, call, parts));
  const isAfter = (place: number): boolean =>
    after === undefined || compareOrder(order, valuesAt(keys, place), after) > 0;
  const compare = (a: number, b: number): number =>
    compareOrder(order, valuesAt(keys, a), valuesAt(keys, b)) || rows[a]! - rows[b]!;
  const first = await watch.time('search', () => firstPlaces(rows.length, from + size, { isAfter, compare, signal }));
  const places = first.slice(from);
  const documents = await watch.time('fetch', () =>
    passages.getMany(
      places.map((place) => rows[place]!),
      signal,
    ),
  );
  const hits = documents.map((document, i): TreeHit => {
    const place = places[i]!;
    return { row: rows[place]!, score: found.scores[place]!, document, orderValues: valuesAt(keys, place) };
  });
  return {
    hits,
    best: rows.length === 0 ? null : found.scores[0]!,
    total: count === 0 ? 0 : Math.min(total, count + 1),
    load: loadOf(found),
  };
}

function search(
  query: LexicalQuery,
  { k, count }: { readonly k: number; readonly count: number },
  { parameters, minScore, signal }: TreeCall,
  { lexical, filter, watch }: TreeParts,
): Promise<LexicalFieldsResult> {
  return watch.time('search', () =>
    lexical.search({
      queries: [query],
      k,
      parameters,
      count,
      minScore,
      filter,
      signal,
    }),
  );
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

function valuesAt(keys: readonly ArrayLike<OrderValue>[], place: number): readonly OrderValue[] {
  return keys.map((values) => values[place]!);
}

interface Placing {
  readonly isAfter: (place: number) => boolean;
  readonly compare: (a: number, b: number) => number;
  readonly signal: AbortSignal | undefined;
}

/** Places between two checks of the time slice. */
const PLACES_AT_ONCE = 512;

/** The first `wanted` of the places below `count`, in order. */
async function firstPlaces(count: number, wanted: number, { isAfter, compare, signal }: Placing): Promise<number[]> {
  const slice = new TimeSlice(signal);
  let kept: number[] = [];
  let worst: number | undefined;
  const cut = (): void => {
    kept = kept.sort(compare).slice(0, wanted);
    worst = kept.length === wanted ? kept.at(-1) : undefined;
  };
  for (let place = 0; place < count; place++) {
    if (place % PLACES_AT_ONCE === 0 && slice.isOver) await slice.yield();
    if (!isAfter(place) || (worst !== undefined && compare(place, worst) > 0)) continue;
    kept.push(place);
    if (kept.length >= 2 * wanted + PLACES_AT_ONCE) cut();
  }
  cut();
  return kept;
}

function loadOf({ postings, postingsRead }: LexicalFieldsResult): LexicalLoad {
  return { queries: 1, postings: postings[0]!, postingsRead: postingsRead[0]! };
}

function tooManyRows(index: string): TrawlError {
  return new TrawlError(
    'INVALID_REQUEST',
    `More than ${MAX_ORDERED_ROWS} passages of ${index} match; that many can be ordered only by score. Narrow the query, or order by score.`,
    { details: { limit: MAX_ORDERED_ROWS } },
  );
}

/** The same matches without the work of scoring them. */
function unscored(query: LexicalQuery): LexicalQuery {
  return { type: 'constant-score', query };
}
