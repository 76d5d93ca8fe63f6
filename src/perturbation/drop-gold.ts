import type { Hit } from '../retrieval/calls/query-outcome.ts';
import type { RetrieveCall, RetrieveResult } from '../retrieval/calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../retrieval/calls/tree-call.ts';
import { retrieveDeepening } from '../retrieval/deepening.ts';
import type { Retriever } from '../retrieval/retriever.ts';

/** Whether a passage (its JSON text) is gold. */
export type IsGold = (document: string) => boolean;

/** How far beyond k a search goes for passages in place of gold ones: that far, or to four times k. */
const MORE_HITS = 60;
const MORE_TIMES = 4;

/**
 * Retrieves k hits per query without gold passages. The passages in their place are the next of the ranking. If the deeper search fails,
 * as that of a replayed index does, the list is shorter.
 *
 * @param golds one per query; undefined for a query that keeps its gold passages.
 */
export async function retrieveWithoutGold(
  retriever: Retriever,
  call: RetrieveCall,
  golds: readonly (IsGold | undefined)[],
): Promise<RetrieveResult> {
  if (golds.every((isGold) => isGold === undefined)) return retriever.retrieve(call);
  const { k, documents = true } = call;
  let first: RetrieveResult['outcomes'] | undefined;
  const maxK = Math.max(k, Math.min(retriever.info.rows, Math.max(k + MORE_HITS, k * MORE_TIMES)));
  const found = await retrieveDeepening(
    retriever,
    { ...call, documents: true },
    {
      maxK,
      async needMore(outcomes) {
        first ??= [...outcomes];
        return golds.flatMap((isGold, i) => {
          const outcome = outcomes[i]!;
          if (isGold === undefined || !outcome.ok) return [];
          return outcome.hits.length - goldIn(outcome.hits, isGold) < k ? [i] : [];
        });
      },
    },
  );
  const outcomes = found.outcomes.map((outcome, i) => {
    const isGold = golds[i];
    const before = first![i]!;
    const now = !outcome.ok && before.ok ? before : outcome;
    if (!now.ok) return now;
    const shown = documents ? now.hits : now.hits.map((hit): Hit => ({ ...hit, document: '' }));
    const droppedGold = isGold === undefined || !before.ok ? 0 : goldIn(before.hits, isGold);
    if (droppedGold === 0) return { ...now, hits: shown.slice(0, k) };
    const hits = shown.filter((_, at) => !isGold!(now.hits[at]!.document)).slice(0, k);
    return { ...now, hits, perturbed: { droppedGold } };
  });
  return { outcomes, timings: found.timings };
}

/** Searches that it takes at most to fill a page. */
const MOST_SEARCHES = 4;

/** The first `from + size` hits of a search by a query tree without gold passages, and the number of these. */
export async function searchTreeWithoutGold(
  retriever: Retriever,
  call: TreeCall,
  isGold: IsGold | undefined,
): Promise<{ readonly result: TreeResult; readonly droppedGold: number }> {
  const wanted = call.from + call.size;
  let size = wanted;
  let result = await retriever.searchTree({ ...call, from: 0, size });
  if (isGold === undefined) return { result, droppedGold: 0 };
  const droppedGold = goldIn(result.hits, isGold);
  for (let searches = 1; searches < MOST_SEARCHES; searches++) {
    const missing = wanted - (result.hits.length - goldIn(result.hits, isGold));
    if (missing <= 0 || result.hits.length < size) break;
    size += MORE_TIMES * missing;
    result = await retriever.searchTree({ ...call, from: 0, size });
  }
  const hits = result.hits.filter(({ document }) => !isGold(document)).slice(0, wanted);
  return { result: { ...result, hits }, droppedGold };
}

function goldIn(hits: readonly Hit[], isGold: IsGold): number {
  return hits.filter(({ document }) => isGold(document)).length;
}
