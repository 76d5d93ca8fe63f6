import { contextOf, type EncoderInput } from '../../encoder/text-encoder.ts';
import type { QueryAnswer } from '../../search/calls/query-outcome.ts';
import type { HybridPlaces } from '../../search/hybrid/hybrid-fusion.ts';

/**
 * What an answer says beside its hits. A record keeps it, so that a replayed reply is the recorded one. Lists have one entry per hit, in
 * the order of the hits.
 */
export interface AnswerFacts extends Pick<QueryAnswer, 'tokens' | 'ranges'> {
  /** The embedded text of a query with a question or history; without them it follows from the query and the prefix of the model. */
  readonly text?: string;
  /** As in `QueryCertificate`. */
  readonly rescored: number | null;
  readonly depth?: number;
  readonly places?: readonly HybridPlaces[];
  readonly firstStage?: readonly { readonly rank: number; readonly score: number }[];
  /** Null if the reranker failed on the query, and the hits are those of the search. */
  readonly rerank?: { readonly model: string; readonly passages: number; readonly truncated: number } | null;
}

export function answerFacts(input: EncoderInput, answer: QueryAnswer): AnswerFacts {
  const { tokens, text, ranges, rerank, hits } = answer;
  const { rescored, depth } = answer.certificate;
  const places = hits.flatMap((hit) => hit.places ?? []);
  const firstStage = hits.flatMap((hit) => hit.firstStage ?? []);
  return {
    tokens,
    ...(contextOf(input).length === 0 ? {} : { text }),
    rescored,
    depth,
    ...(places.length === 0 ? {} : { places }),
    ranges,
    ...(firstStage.length === 0 ? {} : { firstStage }),
    rerank: rerank === undefined ? undefined : rerank.ok ? countsOf(rerank) : null,
  };
}

function countsOf({ model, passages, truncated }: { model: string; passages: number; truncated: number }) {
  return { model, passages, truncated };
}
