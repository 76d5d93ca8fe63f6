import type { RankedPassage } from './run.ts';

/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009). */
const RRF_K = 60;

/**
 * Fuses the lists of several queries by reciprocal rank, as `fusion: "rrf"` of /v1/search: a passage scores the sum of 1 / (60 + rank)
 * over the lists that have it. Of equal scores the passage comes first that an earlier list, or an earlier place in it, has. One list
 * stays as it is. In a list that has a passage twice, the better
 * place counts, and the others keep their ranks.
 */
export function fuseLists(lists: readonly (readonly RankedPassage[])[], k: number): readonly RankedPassage[] {
  const [only] = lists;
  if (lists.length === 1) return only!.slice(0, k);
  const fused = new Map<string, { readonly passage: RankedPassage; score: number }>();
  for (const list of lists) {
    const seen = new Set<string>();
    for (const [i, passage] of list.entries()) {
      if (seen.has(passage.id)) continue;
      seen.add(passage.id);
      const part = 1 / (RRF_K + i + 1);
      const known = fused.get(passage.id);
      if (known === undefined) fused.set(passage.id, { passage, score: part });
      else known.score += part;
    }
  }
  return [...fused.values()]
    .sort((a, b) => b.score - a.score)
    .slice(0, k)
    .map(({ passage, score }) => ({ ...passage, score }));
}
