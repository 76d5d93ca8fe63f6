import { type RankedPassage, type RerankList, rankByScore } from '../../../encoder/rerank/reranker.ts';
import type { Plan } from '../dialect.ts';

/**
 * The plan of a request that sends the passages to rank.
 *
 * @param raw whether scores are the model's output before its activation.
 * @param reply gets the passages of each list, best first, equal scores in their order; the tokens that the reranker read; and its name.
 */
export function rerankPlan(
  lists: readonly RerankList[],
  raw: boolean,
  reply: (result: { ranked: readonly (readonly RankedPassage[])[]; tokens: number; model: string }) => Iterable<string>,
): Plan {
  return {
    queries: lists.length,
    k: 0,
    given: lists.flatMap(({ query, passages }) => [query, ...passages]),
    async run(retriever, signal) {
      const { outcomes, timings } = await retriever.rerank({ lists, raw, signal });
      let tokens = 0;
      let truncated = 0;
      const ranked = outcomes.map((outcome) => {
        if (!outcome.ok) throw outcome.error;
        tokens += outcome.tokens ?? 0;
        truncated += outcome.truncated;
        return rankByScore(outcome.scores);
      });
      const model = retriever.info.reranker?.name ?? '';
      return { timings, truncated, pieces: reply({ ranked, tokens, model }) };
    },
  };
}

/** The first `top_n`; all if it is null or 0. */
export function firstOf(ranked: readonly RankedPassage[], topN: number | null): readonly RankedPassage[] {
  return ranked.slice(0, topN || ranked.length);
}

/** A float32, as the servers of other projects return it. */
export function sigmoid(logit: number): number {
  return Math.fround(1 / (1 + Math.exp(-logit)));
}
