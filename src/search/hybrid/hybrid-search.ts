import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { checkScoresFit } from '../../engine/vectors/search-checks.ts';
import { placesPerQuery, type SearchResult } from '../../engine/vectors/vector-index.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import type { RetrieveCall, ScopedCall } from '../calls/retrieve-call.ts';
import { type DenseSearch, type QueryVectors, rowOf, usableQueries } from '../dense/dense-search.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import type { Documents } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';
import { type FusedRow, fuseLists, type ListRanges, rangesOf, type SideList } from './hybrid-fusion.ts';
import { type HybridSettings, hybridFault, hybridSettings } from './hybrid-settings.ts';

/** Rows of each list that a call holds at once. If its queries have more, they are searched in groups, one after another. */
const MAX_LIST_ROWS = 2 ** 20;
/** A row number and a score in both lists. */
const BYTES_PER_RANK = 32;

/** @throws TrawlError INVALID_REQUEST. */
function checkedSettings(given: HybridSettings | undefined): HybridSettings {
  const settings = given ?? hybridSettings({}, 1);
  const fault = hybridFault(settings);
  if (fault !== undefined) throw new TrawlError('INVALID_REQUEST', fault);
  return settings;
}

/** The queries in groups whose lists have at most `MAX_LIST_ROWS` rows, but at least one query each. */
function* groupsOf<T>(queries: readonly T[], depth: number): Generator<readonly T[]> {
  const size = Math.max(1, Math.floor(MAX_LIST_ROWS / depth));
  for (let start = 0; start < queries.length; start += size) yield queries.slice(start, start + size);
}

/** Bytes of the lists that a hybrid call holds at once; 0 for other modes. */
export function hybridBytes({ mode, queries, hybrid }: RetrieveCall): number {
  if (mode !== 'hybrid') return 0;
  const { depth } = hybrid ?? hybridSettings({}, 1);
  return BYTES_PER_RANK * Math.min(queries.length * depth, Math.max(depth, MAX_LIST_ROWS));
}

interface SideResults {
  /** Of the queries that could be embedded. */
  readonly near: SearchResult;
  /** Of all queries. */
  readonly words: LexicalResult;
  readonly embedded: QueryVectors;
  /** Hits per query in `near` and `words`. */
  readonly depth: number;
}

/** The fused list of a query, and the ranges of the two lists. */
interface FusedList {
  readonly rows: readonly FusedRow[];
  readonly ranges: ListRanges;
}

/** The k best rows of each query; none for a query that could not be embedded. */
async function fuseResults(
  { near, words, embedded }: Omit<SideResults, 'depth'>,
  settings: HybridSettings,
  { k, signal }: Pick<RetrieveCall, 'k' | 'signal'>,
): Promise<FusedList[]> {
  const slice = new TimeSlice(signal);
  const fused: FusedList[] = [];
  let usable = 0;
  for (const [q, { ok }] of embedded.outcomes.entries()) {
    const [dense, bm25] = ok ? [listOf(near, usable++), listOf(words, q)] : [NO_LIST, NO_LIST];
    fused.push({ rows: fuseLists(dense, bm25, settings, k), ranges: rangesOf(dense, bm25, settings) });
    if (slice.isOver) await slice.yield();
  }
  return fused;
}

const NO_LIST: SideList = { rows: new Float64Array(0), scores: new Float32Array(0) };

function listOf({ counts, rows, scores }: ListsOfSide, q: number): SideList {
  const start = q * placesPerQuery({ counts, rows });
  const end = start + counts[q]!;
  return { rows: rows.subarray(start, end), scores: Float32Array.from(scores.subarray(start, end)) };
}

type ListsOfSide = Pick<SearchResult | LexicalResult, 'counts' | 'rows' | 'scores'>;

/** The outcomes of the queries; `documents` belong to the fused rows, query after query. */
function hybridOutcomes(
  { fused, embedded, near, words, depth, dimension }: SideResults & { fused: readonly FusedList[]; dimension: number },
  documents: readonly string[],
): QueryOutcome[] {
  let usable = 0;
  let next = 0;
  return embedded.outcomes.map((outcome, q): QueryOutcome => {
    if (!outcome.ok) return outcome;
    const { rows, ranges } = fused[q]!;
    const hits = rows.map(({ row, score, places }) => ({ row, score, document: documents[next++]!, places }));
    const rescored = near.certificate?.rescored[usable++] ?? null;
    const { tokens, truncated, text, cut } = outcome;
    const vector = rowOf(embedded.vectors, q, dimension);
    const certificate = { exact: near.exact && (words.isExact?.[q] ?? true), rescored, depth };
    return { ok: true, hits, tokens, truncated, text, cut, vector, certificate, ranges: [ranges] };
  });
}

interface HybridParts {
  readonly dense: DenseSearch;
  readonly lexical: LexicalSearch;
  readonly passages: Documents;
  /** Rows of the index. */
  readonly rows: number;
}

/**
 * Hybrid search, in groups of queries that limit the memory of their lists. The words of a group are searched while its queries are
 * embedded and their vectors searched.
 */
export async function retrieveHybrid(
  call: ScopedCall,
  { dense, lexical, passages, rows: indexRows }: HybridParts,
  watch: Stopwatch,
): Promise<QueryOutcome[]> {
  const settings = checkedSettings(call.hybrid);
  const { bm25, rows: filter, template, signal } = call;
  const { dimension } = dense.index;
  const depth = Math.min(settings.depth, Math.max(1, indexRows));
  const outcomes: QueryOutcome[] = [];
  for (const queries of groupsOf(call.queries, depth)) {
    const texts = queries.map((query) => lexical.textOf(query, template));
    const searching = lexical.search(texts, { k: depth, bm25, filter, signal });
    // The encoder's error, if any, rejects the call; this one must not be unhandled then.
    searching.catch(() => undefined);
    const embedded = await dense.embedQueries({ ...call, queries }, watch);
    const [near, words] = await watch.time('search', () =>
      Promise.all([dense.index.search({ ...usableQueries(embedded, dimension), k: depth, filter, signal }), searching]),
    );
    checkScoresFit(near);
    watch.waited('search', near.waitedMs);
    lexical.count(queries, words);
    const fused = await watch.time('search', () => fuseResults({ near, words, embedded }, settings, call));
    const rows = fused.flatMap((list) => list.rows.map(({ row }) => row));
    const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
    outcomes.push(...hybridOutcomes({ fused, embedded, near, words, depth, dimension }, documents));
  }
  return outcomes;
}
