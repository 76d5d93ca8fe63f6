import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { nullableCount, Queries, ResultLists, Score } from './parts/common-fields.ts';
import { resultOf } from './parts/reply-fields.ts';
import { resultLists, scoredHit, searchPlan } from './parts/search-plan.ts';
import { rerankedSearch, scoredText, TOPK_RETRIEVAL, TopkRetrieval } from './rerank/search-r1-rerank.ts';
import { searchR1 } from './search-r1.ts';
import { skyrl } from './skyrl.ts';

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
    topk: nullableCount("Passages per query. null or 0: the server's default.", 5),
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

/** StepSearch's search with reranking: passages as texts, always with scores. */
export const stepSearchRerank = defineDialect({
  name: 'stepsearch-rerank',
  path: '/retrieve/rerank',
  summary: 'A batch of queries with reranking (StepSearch)',
  projects: [{ name: 'StepSearch with reranking' }],
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    queries: Queries,
    topk: nullableCount('Passages per query. null or 0: all that were reranked.', 5),
    topk_retrieval: TopkRetrieval,
  }),
  reply: Type.Object({
    result: Type.Array(Type.Array(Type.Object({ document: Type.String(), score: Score })), {
      description: 'One list per query, best first.',
    }),
  }),
  example: { queries: ['who designed the Brooklyn Bridge'], topk: 3 },
  client: {
    batch: true,
    hit: ['contents'],
    request: (queries, k) => ({ queries, topk: k, topk_retrieval: Math.max(k, TOPK_RETRIEVAL) }),
    lists: resultOf,
  },
  plan: ({ queries, topk, topk_retrieval }, limits) =>
    rerankedSearch({ queries, depth: topk_retrieval, k: topk }, limits, scoredText),
});
