import { createHash } from 'node:crypto';
import { defined } from '../../base/objects.ts';
import { BM25_PROFILES } from '../../engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { IndexDefinition } from '../../index/document-store/index-files.ts';
import type { Perturbed } from '../../search/calls/query-outcome.ts';
import { compareOrder, type TreeHit, type TreeOrder } from '../../search/calls/tree-call.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import { analysedQuery, type QueryTexts } from './highlight/matched-words.ts';
import { nearestRows, type ScoredRow, scoredRowsQuery } from './query/knn-rows.ts';
import { lexicalTree, matchingRows, type QueriedIndex } from './query/lexical-tree.ts';
import type { SearchRequest } from './search-request.ts';
import { orderValuesAfter, treeOrder } from './sort-order.ts';

/** An index of a search, with the query as it was searched there. */
interface SearchedIndex {
  readonly info: RetrieverInfo;
  /** The columns whose numbers have no fraction, because a mapping has them as `long` or another type of integers. */
  readonly integers: ReadonlySet<string>;
  readonly query: LexicalQuery;
  /** For highlighting; undefined if nothing is highlighted. */
  readonly texts: QueryTexts | undefined;
}

export interface IndexHit extends TreeHit {
  readonly index: SearchedIndex;
}

export interface SearchResult {
  readonly indexes: readonly RetrieverInfo[];
  /** Best first, or sorted; equal hits in the order of the indexes and of their rows. */
  readonly hits: readonly IndexHit[];
  /** The best score; undefined without a match. */
  readonly best: number | undefined;
  /** Exact up to `trackTotal` of the request, else more than it. */
  readonly total: number;
  /** How the server changed the hits of the indexes on purpose, together. Absent if it did not. */
  readonly perturbed?: Perturbed;
  readonly timings: StageTimings;
}

/**
 * Searches one index, or several, whose hits are merged by their scores, or by what they are sorted by.
 *
 * @param definitionOf the definition of an index that was made over HTTP.
 */
export async function runSearch(
  retrievers: readonly Retriever[],
  search: SearchRequest,
  definitionOf: (index: string) => IndexDefinition | undefined,
  signal: AbortSignal,
): Promise<SearchResult> {
  const { from, size, trackTotal, minScore, sort, after, trackScores } = search;
  const isOne = retrievers.length === 1;
  const now = Date.now();
  const indexes = retrievers.map((retriever): QueriedIndex => ({ retriever, size, now, signal }));
  // For each index, the rows that each knn of the request may find; undefined: all.
  const filters = await Promise.all(
    indexes.map((index) => Promise.all(search.knn.map(({ filter }) => matchingRows(filter, index)))),
  );
  const nearest = await nearestOfAll(search, indexes, filters);
  const hits: IndexHit[] = [];
  const best: number[] = [];
  let order: readonly TreeOrder[] | undefined;
  let total = 0;
  const changes: Perturbed[] = [];
  const text = searchedText(search);
  const key = isOne || search.knn.length === 0 ? searchKey(search, now) : undefined;
  let timings = NO_TIMINGS;
  for (const [i, retriever] of retrievers.entries()) {
    const { info } = retriever;
    const definition = definitionOf(info.index);
    order = sort && treeOrder(sort, info);
    const query = await indexQuery(search, indexes[i]!, nearest[i]!, filters[i]!);
    const found = await retriever.searchTree({
      query,
      parameters: { ...BM25_PROFILES.elasticsearch, ...definition?.bm25 },
      // The hits before `from` of all indexes together are known only after the merge.
      from: isOne ? from : 0,
      size: isOne ? size : from + size,
      count: trackTotal === false ? 0 : Math.max(1, Math.min(trackTotal, info.rows)),
      minScore,
      order,
      scored: order && trackScores,
      after: sort && after && orderValuesAfter(after, sort, info),
      key,
      text,
      signal,
    });
    if (found.perturbed !== undefined) changes.push(found.perturbed);
    const isHighlighted = search.highlight.length > 0 && found.hits.length > 0 && info.bm25 !== null;
    const texts = isHighlighted ? await analysedQuery(query, info.bm25.analyser, signal) : undefined;
    const index = { info, integers: integersOf(definition), query, texts };
    for (const hit of found.hits) hits.push({ ...hit, index });
    if (found.best !== null) best.push(found.best);
    total += found.total;
    timings = addTimings(timings, found.timings);
  }
  if (!isOne) {
    hits.sort((a, b) =>
      order === undefined ? b.score - a.score : compareOrder(order, a.orderValues ?? [], b.orderValues ?? []),
    );
  }
  return {
    indexes: retrievers.map(({ info }) => info),
    hits: isOne ? hits : hits.slice(from, from + size),
    best: best.length === 0 ? undefined : Math.max(...best),
    total,
    perturbed: changes.length === 0 ? undefined : together(changes),
    timings,
  };
}

function integersOf(definition: IndexDefinition | undefined): ReadonlySet<string> {
  return new Set(definition?.columns.flatMap(({ name, integer }) => (integer ? [name] : [])));
}

/** What a search asks for, for the record: the words of a `match` or `multi_match`, else the query as JSON. */
export function searchedText({ query, knn }: SearchRequest): string {
  if (knn.length > 0) return JSON.stringify({ query, knn });
  const hasText = query?.type === 'match' || query?.type === 'multi-match';
  return hasText ? query.text : JSON.stringify(query ?? { type: 'match-all' });
}

/** Equal searches of an index share their result: the key stands for all that the request's query depends on. */
function searchKey({ query, knn, size }: SearchRequest, now: number): string {
  const text = JSON.stringify([query, knn, size]);
  return createHash('sha256')
    .update(text.includes('now') ? `${now} ${text}` : text)
    .digest('base64url');
}

function together(changes: readonly Perturbed[]): Perturbed {
  const sum = (name: 'droppedGold' | 'distractors'): number | undefined =>
    changes.reduce((all, each) => all + (each[name] ?? 0), 0) || undefined;
  // The indexes wait for one delay.
  const delayMs = Math.max(...changes.map((each) => each.delayMs ?? 0)) || undefined;
  return defined({ droppedGold: sum('droppedGold'), distractors: sum('distractors'), delayMs });
}

/** The query of the request as one index searches it. With `knn`, the scores of the nearest passages are added. */
async function indexQuery(
  { query, knn }: SearchRequest,
  index: QueriedIndex,
  nearest: readonly (readonly ScoredRow[])[],
  filters: readonly (RowBitmap | undefined)[],
): Promise<LexicalQuery> {
  if (knn.length === 0) return lexicalTree(query ?? { type: 'match-all', boost: 1 }, index);
  const { rows } = index.retriever.info;
  const should = knn.map(({ boost }, i) => scoredRowsQuery(nearest[i]!, rows, { boost, among: filters[i] }));
  const words = query === undefined ? [] : [await lexicalTree(query, index)];
  return { type: 'bool', should: [...should, ...words] };
}

/** For each index and each knn of the request, its rows among the k nearest of all indexes together. */
async function nearestOfAll(
  { knn: searches, size }: SearchRequest,
  indexes: readonly QueriedIndex[],
  filters: readonly (readonly (RowBitmap | undefined)[])[],
): Promise<readonly (readonly (readonly ScoredRow[])[])[]> {
  const byIndex: ScoredRow[][][] = indexes.map(() => []);
  for (const [i, knn] of searches.entries()) {
    const k = Math.max(1, knn.k ?? size);
    const found = await Promise.all(
      indexes.map(({ retriever, signal }, at) => nearestRows(retriever, { knn, k, rows: filters[at]![i], signal })),
    );
    const all = found.flatMap((rows, index) => rows.map((scored) => ({ index, scored })));
    const nearest = all
      .sort((a, b) => b.scored.score - a.scored.score || b.scored.near - a.scored.near || a.index - b.index)
      .slice(0, k);
    for (const [index, lists] of byIndex.entries()) {
      lists.push(nearest.flatMap((each) => (each.index === index ? [each.scored] : [])));
    }
  }
  return byIndex;
}
