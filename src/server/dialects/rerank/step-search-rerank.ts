import { Type } from 'typebox';
import { defineDialect } from '../dialect.ts';
import { nullable, Queries, Score } from '../parts/common-fields.ts';
import { resultOf } from '../parts/reply-fields.ts';
import { rerankedSearch, scoredText } from './search-r1-rerank.ts';

const TOPK = 5;
const TOPK_RETRIEVAL = 10;

/** StepSearch's search with reranking: passages as texts, always with scores. */
export const stepSearchRerank = defineDialect({
  name: 'stepsearch-rerank',
  path: '/retrieve/rerank',
  summary: 'A batch of queries with reranking (StepSearch)',
  projects: [{ name: 'StepSearch with reranking' }],
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    queries: Queries,
    topk: {
      ...nullable(Type.Integer({ minimum: 0 }), 'Passages per query. null or 0: all that were reranked.'),
      default: TOPK as number | null,
    },
    topk_retrieval: {
      ...nullable(Type.Integer({ minimum: 0 }), "Passages per query to rerank. null or 0: the server's depth."),
      default: TOPK_RETRIEVAL as number | null,
    },
  }),
  reply: Type.Object({
    result: Type.Array(Type.Array(Type.Object({ document: Type.String(), score: Score })), {
      description: 'One list per query, best first.',
    }),
  }),
  example: { queries: ['who designed the Brooklyn Bridge'], topk: 3 },
  client: {
    batch: true,
    ids: false,
    texts: 'joined',
    request: (queries, k) => ({ queries, topk: k, topk_retrieval: Math.max(k, TOPK_RETRIEVAL) }),
    lists: resultOf,
  },
  plan: ({ queries, topk, topk_retrieval }, limits) =>
    rerankedSearch({ queries, depth: topk_retrieval, k: topk, limits }, scoredText),
});
