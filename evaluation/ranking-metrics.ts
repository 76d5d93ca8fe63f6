import { type QueryJudgements, relevantCount } from './judgements.ts';

/**
 * The metrics of one query, by the definitions of trec_eval. `ranking` has passage ids, best first; its order is taken
 * as it is (trec_eval sorts by score and breaks ties by id). If an id comes twice, only its first place earns anything.
 */

/** Share of the relevant passages that are among the first k: `recall_k`. 0 if none is relevant. */
export function recallAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  const relevant = relevantCount(judgements);
  if (relevant === 0) return 0;
  return gainsOf(ranking, judgements, k).filter((gain) => gain > 0).length / relevant;
}

/** 1 if a relevant passage is among the first k, else 0: `success_k`. */
export function hitAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  return gainsOf(ranking, judgements, k).some((gain) => gain > 0) ? 1 : 0;
}

/** 1 / rank of the first relevant passage, 0 if none is among the first k: `recip_rank`, which looks at all. */
export function reciprocalRank(ranking: readonly string[], judgements: QueryJudgements, k = Infinity): number {
  const position = gainsOf(ranking, judgements, k).findIndex((gain) => gain > 0);
  return position === -1 ? 0 : 1 / (position + 1);
}

/**
 * Discounted cumulative gain of the first k over that of the best possible ranking: `ndcg_cut_k`. The gain of a passage
 * is its grade (not 2^grade - 1), the discount of rank r is log2(r + 1). 0 if none is relevant.
 */
export function ndcgAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  const ideal = [...judgements.values()].filter((grade) => grade > 0).sort((a, b) => b - a);
  const best = discountedGain(ideal.slice(0, k));
  return best === 0 ? 0 : discountedGain(gainsOf(ranking, judgements, k)) / best;
}

/** The gain at each of the first k ranks: the grade, or 0 where it is not positive. */
function gainsOf(ranking: readonly string[], judgements: QueryJudgements, k: number): number[] {
  const seen = new Set<string>();
  return ranking.slice(0, k).map((id) => {
    if (seen.has(id)) return 0;
    seen.add(id);
    return Math.max(0, judgements.get(id) ?? 0);
  });
}

function discountedGain(gains: readonly number[]): number {
  return gains.reduce((sum, gain, position) => sum + gain / Math.log2(position + 2), 0);
}
