import { type QueryJudgements, relevantIds } from './judgements.ts';

/**
 * Metrics of one query, as defined by trec_eval. `ranking` lists passage ids, best first, and is used in this order
 * (trec_eval sorts by score and breaks ties by id). Of a repeated id only the first occurrence counts.
 */

/** Share of the relevant passages that are among the first k: `recall_k`. 0 if none is relevant. */
export function recallAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  const relevant = relevantIds(judgements).size;
  if (relevant === 0) return 0;
  return gainsOf(ranking, judgements, k).filter((gain) => gain > 0).length / relevant;
}

/** Share of the first k ranks that have a relevant passage: `P_k`. Ranks without a passage count. */
export function precisionAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  return gainsOf(ranking, judgements, k).filter((gain) => gain > 0).length / k;
}

/** 1 if a relevant passage is among the first k, else 0: `success_k`. */
export function hitAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  return gainsOf(ranking, judgements, k).some((gain) => gain > 0) ? 1 : 0;
}

/**
 * 1 if all relevant passages are among the first k, else 0; 0 if none is relevant. A question that needs several passages, as in
 * HotpotQA, can only be answered from all of them.
 */
export function allGoldAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  return recallAt(ranking, judgements, k) === 1 ? 1 : 0;
}

/** Precision after the first R, where R is the number of relevant passages: `Rprec`. 0 if none is relevant. */
export function rPrecision(ranking: readonly string[], judgements: QueryJudgements): number {
  return recallAt(ranking, judgements, relevantIds(judgements).size);
}

/**
 * Average precision: the precision at the rank of each relevant passage among the first k, summed and divided by the number of
 * relevant passages: `map_cut_k`, and `map` without k. 0 if none is relevant.
 */
export function averagePrecision(ranking: readonly string[], judgements: QueryJudgements, k = Infinity): number {
  const relevant = relevantIds(judgements).size;
  if (relevant === 0) return 0;
  let found = 0;
  let sum = 0;
  for (const [position, gain] of gainsOf(ranking, judgements, k).entries()) {
    if (gain === 0) continue;
    found += 1;
    sum += found / (position + 1);
  }
  return sum / relevant;
}

/** 1 / rank of the first relevant passage; 0 if none is among the first k. trec_eval's `recip_rank` has no cutoff. */
export function reciprocalRank(ranking: readonly string[], judgements: QueryJudgements, k = Infinity): number {
  const position = gainsOf(ranking, judgements, k).findIndex((gain) => gain > 0);
  return position === -1 ? 0 : 1 / (position + 1);
}

/**
 * Discounted cumulative gain of the first k, divided by the gain of the best possible ranking: `ndcg_cut_k`. The gain of a
 * passage is its grade (not 2^grade - 1), the discount of rank r is log2(r + 1). 0 if no passage is relevant.
 */
export function ndcgAt(ranking: readonly string[], judgements: QueryJudgements, k: number): number {
  const ideal = [...judgements.values()].filter((grade) => grade > 0).sort((a, b) => b - a);
  const best = discountedGain(ideal.slice(0, k));
  return best === 0 ? 0 : discountedGain(gainsOf(ranking, judgements, k)) / best;
}

/** The gain at each of the first k ranks: the grade, or 0 if the grade is negative. */
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
