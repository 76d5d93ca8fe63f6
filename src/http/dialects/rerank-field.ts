import { Type } from 'typebox';
import type { RerankSettings } from '../../retrieval/retriever.ts';
import { nullable } from './common-fields.ts';
import type { RequestLimits } from './dialect.ts';
import { refuseTooLargeK } from './search-plan.ts';

/** Hits that the reranker scores if neither the request nor the server sets it. */
export const DEFAULT_RERANK_DEPTH = 50;

/** Whether and how the hits are reranked. */
export const Rerank = nullable(
  Type.Union([
    Type.Boolean(),
    Type.Object(
      {
        depth: Type.Optional(
          Type.Integer({
            minimum: 1,
            description: `Hits of the search that the reranker scores; at least k are scored in any case. Absent: the server's default, or else ${DEFAULT_RERANK_DEPTH}.`,
          }),
        ),
        model: Type.Optional(Type.String({ description: 'Name of the reranker. Another name is refused.' })),
        allowFailure: Type.Optional(
          Type.Boolean({
            description:
              "Whether a query gets the hits of the search, in their order, if the reranker fails. Absent: the server's default, or else false: the query fails.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ]),
  "Whether a reranker orders the hits: true, false, or how it does. Absent: the server's default.",
);

type Given = boolean | { readonly depth?: number; readonly model?: string; readonly allowFailure?: boolean } | null;

/**
 * The reranking of a request, for `RetrieveCall`.
 *
 * @throws RequestError K_TOO_LARGE for a depth over the limits of `k`.
 */
export function rerankOf(
  given: Given,
  queries: number,
  limits: RequestLimits,
): { readonly rerank?: RerankSettings } {
  const ofServer = given === false ? null : limits.rerank;
  if (given === false || (given === null && ofServer === null)) return {};
  const chosen = typeof given === 'object' ? given : null;
  const rerank = { ...ofServer, ...chosen, depth: chosen?.depth ?? ofServer?.depth ?? DEFAULT_RERANK_DEPTH };
  refuseTooLargeK(rerank.depth, 'rerank.depth', queries, limits);
  return { rerank };
}
