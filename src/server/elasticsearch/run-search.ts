import { createHash } from 'node:crypto';
import { BM25_PROFILES } from '../../engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { Perturbed } from '../../search/calls/query-outcome.ts';
import { compareOrder, type TreeHit, type TreeOrder } from '../../search/calls/tree-call.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import { QueryTexts } from './highlight/query-texts.ts';
import type { DslKnn } from './query/dsl-query.ts';
import { nearestRows, type ScoredRow, scoredRowsQuery } from './query/knn-rows.ts';
import { lexicalTree, matchingRows, type QueriedIndex } from './query/lexical-tree.ts';
import type { SearchRequest } from './search-request.ts';
import { orderValuesAfter, treeOrder } from './sort-order.ts';

/** An index of a search, with the query as it was searched there. */
interface SearchedIndex {
  readonly info: RetrieverInfo;
  readonly query: LexicalQuery;
  /** For highlighting; undefined if nothing is highlighted. */
  readonly texts: QueryTexts | undefined;
}

export interface IndexHit extends TreeHit {
  readonly index: SearchedIndex;
}

export interface SearchResult {
  /** Indexes searched. */
  readonly indexes: number;
  /** Best first, or sorted; equal hits in the order of the indexes and of their rows. */
  readonly hits: readonly IndexHit[];
  /** Null without a match. */
  readonly best: number | null;
  /** Exact up to `trackTotal` of the request, else more than it. */
  readonly total: number;
  /** How the server changed the hits of the indexes on purpose, together. Absent if it did not. */
  readonly perturbed?: Perturbed;
  readonly timings: StageTimings;
}

/** Searches one index, or several, whose hits are merged by their scores, or by what they are sorted by. */
export async function runSearch(
  retrievers: readonly Retriever[],
  search: SearchRequest,
  signal: AbortSignal,
): Promise<SearchResult> {
  const { from, size, trackTotal, minScore, sort, after, trackScores } = search;
  const isOne = retrievers.length === 1;
  const now = Date.now();
  const indexes = retrievers.map((retriever): QueriedIndex => ({ retriever, size, now, signal }));
  const filters = await Promise.all(indexes.map((index) => filtersOf(search, index)));
  const nearest = await nearestOf(search, indexes, filters);
  const hits: IndexHit[] = [];
  const best: number[] = [];
  let order: readonly TreeOrder[] | undefined;
  let total = 0;
  const changes: Perturbed[] = [];
  const text = textOf(search);
  let timings = NO_TIMINGS;
  for (const [i, retriever] of retrievers.entries()) {
    const index = indexes[i]!;
    const { info } = retriever;
    order = sort && treeOrder(sort, info);
    const query = await queryOf(search, index, nearest[i]!, filters[i]!);
    const key = keyOf(search, { isOne, now });
    const found = await retriever.searchTree({
      query,
      parameters: BM25_PROFILES.elasticsearch,
      // The hits before `from` of all indexes together are known only after the merge.
      from: isOne ? from : 0,
      size: isOne ? size : from + size,
      count: trackTotal === false ? 0 : Math.max(1, Math.min(trackTotal, info.rows)),
      minScore,
      ...(order === undefined ? {} : { order, scored: trackScores }),
      ...(sort === undefined || after === undefined ? {} : { after: orderValuesAfter(after, sort, info) }),
      key,
      text,
      signal,
    });
    if (found.perturbed !== undefined) changes.push(found.perturbed);
    const isHighlighted = search.highlight.length > 0 && found.hits.length > 0 && info.bm25 !== null;
    const texts = isHighlighted ? await QueryTexts.of(query, info.bm25.analyser, signal) : undefined;
    const searched = { info, query, texts };
    for (const hit of found.hits) hits.push({ ...hit, index: searched });
    if (found.best !== null) best.push(found.best);
    total += found.total;
    timings = addTimings(timings, found.timings);
  }
  if (!isOne) hits.sort(comparing(order));
  return {
    indexes: retrievers.length,
    hits: isOne ? hits : hits.slice(from, from + size),
    best: best.length === 0 ? null : Math.max(...best),
    total,
    ...(changes.length === 0 ? {} : { perturbed: together(changes) }),
    timings,
  };
}

/** What a search asks for, for the record: the words of a `match` or `multi_match`, else the query as JSON. */
export function textOf({ query, knn }: Pick<SearchRequest, 'query' | 'knn'>): string {
  const hasText = query?.type === 'match' || query?.type === 'multi-match';
  if (hasText && knn.length === 0) return query.text;
  return JSON.stringify(knn.length === 0 ? (query ?? { type: 'match-all' }) : { query, knn });
}

function together(changes: readonly Perturbed[]): Perturbed {
  const sum = (name: 'droppedGold' | 'distractors'): Perturbed => {
    const count = changes.reduce((all, each) => all + (each[name] ?? 0), 0);
    return count === 0 ? {} : { [name]: count };
  };
  // The indexes wait for one delay.
  const delayMs = Math.max(...changes.map((each) => each.delayMs ?? 0));
  return { ...sum('droppedGold'), ...sum('distractors'), ...(delayMs === 0 ? {} : { delayMs }) };
}

function comparing(order: readonly TreeOrder[] | undefined): (a: IndexHit, b: IndexHit) => number {
  return (a, b) =>
    order === undefined ? b.score - a.score : compareOrder(order, a.orderValues ?? [], b.orderValues ?? []);
}

/** The query of one index: that of the request, or its nearest passages, whose scores are added. */
async function queryOf(
  { query, knn }: SearchRequest,
  index: QueriedIndex,
  nearest: readonly (readonly ScoredRow[])[],
  filters: readonly (RowBitmap | undefined)[],
): Promise<LexicalQuery> {
  const all = { type: 'match-all', boost: 1 } as const;
  if (knn.length === 0) return lexicalTree(query ?? all, index);
  const { rows } = index.retriever.info;
  const should = knn.map(({ boost }, i) => scoredRowsQuery(nearest[i]!, rows, { boost, among: filters[i] }));
  const words = query === undefined ? [] : [await lexicalTree(query, index)];
  return { type: 'bool', should: [...should, ...words] };
}

/** The rows that each knn of the request may find in an index; undefined: all. */
function filtersOf({ knn }: SearchRequest, index: QueriedIndex): Promise<readonly (RowBitmap | undefined)[]> {
  return Promise.all(knn.map(({ filter }) => matchingRows(filter, index)));
}

/** For each index and each knn of the request, its rows among the k nearest of all indexes together. */
async function nearestOf(
  { knn, size }: SearchRequest,
  indexes: readonly QueriedIndex[],
  filters: readonly (readonly (RowBitmap | undefined)[])[],
): Promise<readonly (readonly (readonly ScoredRow[])[])[]> {
  const ofIndexes: ScoredRow[][][] = indexes.map(() => []);
  for (const [i, one] of knn.entries()) {
    const k = Math.max(1, one.k ?? size);
    const found = await Promise.all(indexes.map((index, at) => nearestIn(one, k, index, filters[at]![i])));
    const all = found.flatMap((rows, index) => rows.map((scored) => ({ index, scored })));
    const kept = all.sort((a, b) => b.scored.score - a.scored.score || a.index - b.index).slice(0, k);
    for (const [index, of] of ofIndexes.entries()) {
      of.push(kept.flatMap((each) => (each.index === index ? [each.scored] : [])));
    }
  }
  return ofIndexes;
}

function nearestIn(
  knn: DslKnn,
  k: number,
  index: QueriedIndex,
  rows: RowBitmap | undefined,
): Promise<readonly ScoredRow[]> {
  return nearestRows(index.retriever, { knn, k, rows, signal: index.signal });
}

/**
 * Equal searches of an index share their result. Undefined where the query depends on more than the request: on another index, or on
 * the time.
 */
function keyOf(
  { query, knn, size }: SearchRequest,
  { isOne, now }: { readonly isOne: boolean; readonly now: number },
): string | undefined {
  if (knn.length > 0 && !isOne) return undefined;
  const text = JSON.stringify([query, knn, size]);
  return createHash('sha256')
    .update(text.includes('now') ? `${now} ${text}` : text)
    .digest('base64url');
}
