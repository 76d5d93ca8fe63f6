import { Type } from 'typebox';
import { HYBRID_FUSIONS, type HybridOptions, MAX_HYBRID_NUMBER } from '../../search/hybrid/hybrid-settings.ts';
import { Score } from '../dialects/parts/common-fields.ts';
import { RequestError } from '../errors/request-error.ts';
import type { RequestLimits } from '../server-config.ts';

const Weight = Type.Number({ minimum: 0, maximum: MAX_HYBRID_NUMBER });

/** The field `hybrid` of a request. */
export const HybridField = Type.Object(
  {
    fusion: Type.Optional(
      Type.Enum([...HYBRID_FUSIONS], {
        description:
          'rrf: reciprocal rank fusion, weight / (rrfK + rank) of each list added; weighted: the scores of each list, scaled to 0 … 1, times its weight.',
      }),
    ),
    rrfK: Type.Optional(
      Type.Number({ minimum: 0, maximum: MAX_HYBRID_NUMBER, description: 'The constant of rrf. Absent: 60.' }),
    ),
    denseWeight: Type.Optional(Weight),
    bm25Weight: Type.Optional(Weight),
    depth: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Passages of each list that are fused. A passage that neither list has among them is not found. Absent: 100, or the number of hits that are considered if it is larger.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** @throws RequestError K_TOO_LARGE for a depth over the server's limit of k. */
export function refuseTooDeep(given: HybridOptions | null, { maxK, hybrid }: RequestLimits): void {
  const most = Math.max(maxK, hybrid.depth ?? 0);
  const depth = given?.depth ?? 0;
  if (depth <= most) return;
  const reason = `hybrid.depth is ${depth}; the limit of this server is ${most} passages per list.`;
  throw new RequestError('K_TOO_LARGE', `${reason} Lower hybrid.depth.`, [
    { type: 'less_than_equal', loc: ['body', 'hybrid', 'depth'], msg: reason },
  ]);
}

const Place = Type.Object({
  rank: Type.Integer({ description: 'From 1.' }),
  score: Score,
  part: Type.Optional(
    Type.Number({
      description:
        'With explain: what the list adds to the score of the hit, which is the sum of both parts, rounded to float32.',
    }),
  ),
});

/** The fields of a hit of hybrid search. */
export const HybridHitFields = {
  dense: Type.Optional(
    Type.Union([Place, Type.Null()], {
      description:
        'With mode hybrid: where the dense list has the passage; null if it is not among the first passages to the depth. Absent in other modes.',
    }),
  ),
  bm25: Type.Optional(Type.Union([Place, Type.Null()], { description: 'The same for the list of bm25.' })),
};
