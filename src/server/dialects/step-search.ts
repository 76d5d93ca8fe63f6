import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { nullable, Queries, ResultLists } from './parts/common-fields.ts';
import { resultLists, scoredHit } from './parts/result-lists.ts';
import { searchPlan } from './parts/search-plan.ts';
import { searchR1 } from './search-r1.ts';
import { skyrl } from './skyrl.ts';

const TOPK = 5;

/** StepSearch's `/retrieve` without reranking: Search-R1's batch, with five passages by default and always with scores. */
export const stepSearch = defineDialect({
  name: 'stepsearch',
  path: '/retrieve',
  summary: 'A batch of queries, always with scores (StepSearch)',
  projects: [{ name: 'StepSearch' }],
  onlyIfNamed: true,
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    queries: Queries,
    topk: {
      ...nullable(Type.Integer({ minimum: 0 }), "Passages per query. null or 0: the server's default."),
      default: TOPK as number | null,
    },
  }),
  reply: ResultLists,
  example: { queries: ['who designed the Brooklyn Bridge'] },
  claims: (body) => !skyrl.claims(body, false),
  client: searchR1.client,
  plan({ queries, topk }, limits) {
    const search = { queries, k: topk || limits.topk, kField: 'topk', limits };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, scoredHit));
  },
});
