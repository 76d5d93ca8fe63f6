import { type RankedPassage, rankByScore } from '../../../encoder/rerank/rank-by-score.ts';
import type { RerankList } from '../../../encoder/rerank/reranker.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import type { Plan } from '../dialect.ts';

/** The lists of a rerank request, ranked. */
export interface Reranked {
  /** One per list: its passages, best first, equal scores in their order. */
  readonly ranked: readonly (readonly RankedPassage[])[];
  /** Tokens that the reranker read. */
  readonly tokens: number;
  /** Name of the reranker. */
  readonly model: string;
}

/**
 * The plan of a request that sends the passages to rank.
 *
 * @param raw whether scores are the model's output before its activation.
 */
export function rerankPlan(
  { lists, raw = false }: { readonly lists: readonly RerankList[]; readonly raw?: boolean },
  reply: (result: Reranked) => Iterable<string>,
): Plan {
  return {
    queries: lists.length,
    k: 0,
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
      return { timings, search: null, truncated, pieces: reply({ ranked, tokens, model: nameOf(retriever.info) }) };
    },
  };
}

function nameOf({ reranker }: RetrieverInfo): string {
  return reranker?.name ?? '';
}
