import { type Static, Type } from 'typebox';
import { defined } from '../../base/objects.ts';
import { DEFAULT_RERANK_DEPTH, type RetrieveCall } from '../../search/calls/retrieve-call.ts';
import { nullable } from '../dialects/parts/common-fields.ts';
import { refuseTooLargeK } from '../dialects/parts/search-plan.ts';
import type { RequestLimits } from '../server-config.ts';

/** The field `rerank` of a request. */
export const RerankField = nullable(
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

type Given = Static<typeof RerankField>;

/** The reranking that a request asks for, or that the server does by default; empty for none. */
export function rerankOf(given: Given, { rerank: ofServer }: RequestLimits): Pick<RetrieveCall, 'rerank'> {
  if (given === false || (given === null && ofServer === null)) return {};
  return {
    rerank: {
      depth: DEFAULT_RERANK_DEPTH,
      ...defined(ofServer ?? {}),
      ...defined(typeof given === 'object' ? (given ?? {}) : {}),
    },
  };
}

/** @throws RequestError K_TOO_LARGE for a depth over the limits of k. */
export function refuseTooDeepReranking(given: Given, queries: number, limits: RequestLimits): void {
  const { rerank } = rerankOf(given, limits);
  if (rerank !== undefined) refuseTooLargeK(rerank.depth, 'rerank.depth', queries, limits);
}
