import { TimeSlice } from '../../src/base/time-slice.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall, RetrieveResult } from '../../src/search/calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../../src/search/calls/tree-call.ts';
import { retrieveDeepening } from '../../src/search/deepening.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { IsGold } from './request-perturbation.ts';

/** How far beyond k a search goes for passages in place of gold ones: that far, or to four times k. */
const MORE_HITS = 60;
const MORE_TIMES = 4;

/**
 * Retrieves k hits per query without gold passages. The passages in their place are the next of the ranking. If the deeper search fails,
 * as a replayed index makes it fail, the list is shorter.
 *
 * @param goldTests one per query; undefined for a query that keeps its gold passages.
 * @param maxHits most hits of all queries together, if k allows it.
 */
export async function retrieveWithoutGold(
  retriever: Retriever,
  call: RetrieveCall,
  goldTests: readonly (IsGold | undefined)[],
  maxHits = Number.POSITIVE_INFINITY,
): Promise<RetrieveResult> {
  if (goldTests.every((isGold) => isGold === undefined)) return retriever.retrieve(call);
  const { k, documents = true } = call;
  const slice = new TimeSlice(call.signal);
  const lists = goldTests.map((isGold) => (isGold === undefined ? undefined : goldRows(isGold, slice)));
  let first: RetrieveResult['outcomes'] | undefined;
  const perQuery = Math.min(retriever.info.rows, Math.floor(maxHits / goldTests.length));
  const maxK = Math.max(k, Math.min(perQuery, Math.max(k + MORE_HITS, k * MORE_TIMES)));
  const found = await retrieveDeepening(
    retriever,
    { ...call, documents: true },
    {
      maxK,
      // Called after each search, so that all hits are judged in the end.
      async needMore(outcomes) {
        first ??= [...outcomes];
        const short: number[] = [];
        for (const [i, gold] of lists.entries()) {
          const outcome = outcomes[i]!;
          if (gold === undefined || !outcome.ok) continue;
          await gold.judge(outcome.hits);
          if (outcome.hits.length - gold.countIn(outcome.hits) < k) short.push(i);
        }
        return short;
      },
    },
  );
  const outcomes = found.outcomes.map((outcome, i) => {
    const gold = lists[i];
    const shallow = first![i]!;
    const deepest = !outcome.ok && shallow.ok ? shallow : outcome;
    if (!deepest.ok) return deepest;
    const shown = documents ? deepest.hits : deepest.hits.map((hit): Hit => ({ ...hit, document: '' }));
    const droppedGold = gold === undefined || !shallow.ok ? 0 : gold.countIn(shallow.hits);
    if (droppedGold === 0) return { ...deepest, hits: shown.slice(0, k) };
    const hits = shown.filter((hit) => !gold!.has(hit)).slice(0, k);
    return { ...deepest, hits, perturbed: { droppedGold } };
  });
  return { outcomes, timings: found.timings };
}

/** Searches that it takes at most to fill a page. */
const MOST_SEARCHES = 4;

/**
 * The first `from + size` hits of a search by a query tree without gold passages, and the number of these.
 *
 * @param maxHits most hits of a deeper search.
 */
export async function searchTreeWithoutGold(
  retriever: Retriever,
  call: TreeCall,
  isGold: IsGold | undefined,
  maxHits = Number.POSITIVE_INFINITY,
): Promise<{ readonly result: TreeResult; readonly droppedGold: number }> {
  const wanted = call.from + call.size;
  let size = wanted;
  let result = await retriever.searchTree({ ...call, from: 0, size });
  if (isGold === undefined) return { result, droppedGold: 0 };
  const gold = goldRows(isGold, new TimeSlice(call.signal));
  await gold.judge(result.hits);
  const droppedGold = gold.countIn(result.hits);
  for (let searches = 1; searches < MOST_SEARCHES; searches++) {
    const missing = wanted - (result.hits.length - gold.countIn(result.hits));
    if (missing <= 0 || result.hits.length < size || size >= maxHits) break;
    size = Math.min(maxHits, size + MORE_TIMES * missing);
    result = await retriever.searchTree({ ...call, from: 0, size });
    await gold.judge(result.hits);
  }
  const hits = result.hits.filter((hit) => !gold.has(hit)).slice(0, wanted);
  return { result: { ...result, hits }, droppedGold };
}

/** Finds out which rows are gold for a query. Each passage is read once, since looking for answers in it takes long. */
function goldRows(isGold: IsGold, slice: TimeSlice) {
  const judged = new Map<number, boolean>();
  const has = ({ row }: Hit): boolean => judged.get(row) === true;
  return {
    /** Reads the passages that were not read before. @throws TrawlError CANCELLED if the signal was aborted. */
    async judge(hits: readonly Hit[]): Promise<void> {
      for (const { row, document } of hits) {
        if (judged.has(row)) continue;
        if (slice.isOver) await slice.yield();
        judged.set(row, isGold(document));
      }
    },
    has,
    countIn: (hits: readonly Hit[]) => hits.filter(has).length,
  };
}
