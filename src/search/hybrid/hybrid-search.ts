import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { Hit, QueryAnswer, QueryOutcome, ShortReason } from '../calls/query-outcome.ts';
import type { RetrieveCall, ScopedCall } from '../calls/retrieve-call.ts';
import { type DenseSearch, type EmbeddedOutcome, queryOutcomes } from '../dense/dense-search.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import { type Documents, type FoundRows, foundFor } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';
import { type FusedList, fuseLists, type HybridPlaces, partOf, type SideList } from './hybrid-fusion.ts';
import { type HybridSettings, hybridFault, hybridSettings } from './hybrid-settings.ts';

/** Rows of each list that a call holds at once. If its queries have more, they are searched in groups, one after another. */
const MAX_LIST_ROWS = 2 ** 20;
/** A row number and a score in both lists. */
const BYTES_PER_RANK = 32;

/** Bytes of the lists that a hybrid call holds at once; 0 for other modes. */
export function hybridBytes({ mode, queries, hybrid }: RetrieveCall): number {
  if (mode !== 'hybrid') return 0;
  const { depth } = hybrid ?? hybridSettings({}, 1);
  return BYTES_PER_RANK * Math.min(queries.length * depth, Math.max(depth, MAX_LIST_ROWS));
}

interface HybridParts {
  readonly dense: DenseSearch;
  readonly lexical: LexicalSearch;
  readonly passages: Documents;
  /** Rows of the index. */
  readonly rows: number;
}

/**
 * Hybrid search, in groups of queries that limit the memory of their lists.
 *
 * @throws TrawlError INVALID_REQUEST for settings out of range.
 */
export async function retrieveHybrid(call: ScopedCall, parts: HybridParts, watch: Stopwatch): Promise<QueryOutcome[]> {
  const settings = call.hybrid ?? hybridSettings({}, 1);
  const fault = hybridFault(settings);
  if (fault !== undefined) throw new TrawlError('INVALID_REQUEST', fault);
  const depth = Math.min(settings.depth, Math.max(1, parts.rows));
  const groupSize = Math.max(1, Math.floor(MAX_LIST_ROWS / depth));
  const outcomes: QueryOutcome[] = [];
  for (let start = 0; start < call.queries.length; start += groupSize) {
    const group = { ...call, queries: call.queries.slice(start, start + groupSize) };
    outcomes.push(...(await retrieveGroup(group, { ...parts, settings, depth, start }, watch)));
  }
  return outcomes;
}

/**
 * Searches the words of the queries while their texts are embedded and their vectors searched.
 *
 * @param start position of the first query in the whole call.
 */
async function retrieveGroup(
  call: ScopedCall,
  parts: HybridParts & { readonly settings: HybridSettings; readonly depth: number; readonly start: number },
  watch: Stopwatch,
): Promise<QueryOutcome[]> {
  const { dense, lexical, passages, settings, depth, start } = parts;
  const { queries, k, bm25, rows: filter, excluded, template, signal } = call;
  const texts = queries.map((query) => lexical.queryText(query, template));
  const searching = lexical.search(texts, { k: depth, bm25, filter, excluded, signal });
  // If the encoder fails, its error rejects the call, and the error of this search must not be unhandled.
  searching.catch(() => undefined);
  const embedded = await dense.embedQueries(call, watch);
  const [near, words] = await watch.time('search', () =>
    Promise.all([dense.search(embedded, { k: depth, filter, signal }, excluded), searching]),
  );
  watch.waited('search', near.waitedMs);
  lexical.count(queries, words);
  // One list for each query that could be embedded.
  const fused: (FusedList & { readonly exact: boolean; readonly short: ShortReason | undefined })[] = [];
  await watch.time('search', async () => {
    const slice = new TimeSlice(signal);
    for (const [i, { ok }] of embedded.entries()) {
      if (!ok) continue;
      const [nearList, wordList] = [sideList(near, fused.length), sideList(words, i)];
      const list = fuseLists(nearList, wordList, settings, k);
      const isCut = list.rows.length < k && Math.max(nearList.rows.length, wordList.rows.length) === depth;
      fused.push({
        ...list,
        short: isCut && depth < parts.rows ? 'limit' : undefined,
        exact: near.exact && (words.isExact?.[i] ?? true),
      });
      if (slice.isOver) await slice.yield();
    }
  });
  const rows = fused.flatMap((list) => list.rows.map(({ row }) => row));
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  let next = 0;
  const hits = fused.map((list) => list.rows.map((row) => ({ ...row, document: documents[next++]! })));
  const answer = (query: EmbeddedOutcome, q: number): QueryAnswer => {
    const { scales, exact, short } = fused[q]!;
    const rescored = near.certificate?.rescored[q] ?? null;
    return { ...query, hits: hits[q]!, certificate: { exact, rescored, depth }, scales: [scales], short };
  };
  return queryOutcomes(embedded, near.overflows, answer, start);
}

function sideList(found: FoundRows, q: number): SideList {
  const { rows, scores } = foundFor(found, q);
  return { rows, scores: Float32Array.from(scores) };
}

/** How a hybrid search fused its lists: the settings, the formula in words, and the scale of each list. */
export function explainedFusion(settings: HybridSettings, { scales = [] }: QueryAnswer) {
  const { fusion, rrfK, denseWeight, bm25Weight, depth } = settings;
  const part = (side: string, weight: number): string =>
    fusion === 'rrf' ? `${weight} / (${rrfK} + ${side} rank)` : `${weight} · (${side} score − floor) / deviation`;
  const formula = `${part('dense', denseWeight)} + ${part('bm25', bm25Weight)}`;
  return { fusion, rrfK, denseWeight, bm25Weight, depth, formula, lists: scales };
}

/** The places of a hit of hybrid search, each with `part`: what the list adds to the score. Undefined in other modes. */
export function explainedPlaces(
  { places, source }: Hit,
  settings: HybridSettings | undefined,
  { scales = [] }: QueryAnswer,
): HybridPlaces | undefined {
  const own = scales.find(({ index }) => index === source?.index);
  if (places === undefined || own === undefined || settings === undefined) return places;
  const withPart = (side: keyof HybridPlaces) => {
    const place = places[side];
    return place === null ? null : { ...place, part: partOf(place, side, own, settings) };
  };
  return { dense: withPart('dense'), bm25: withPart('bm25') };
}
