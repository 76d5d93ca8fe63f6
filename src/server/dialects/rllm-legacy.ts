import { Type } from 'typebox';
import type { RetrieveResult } from '../../search/calls/retrieve-call.ts';
import { defineDialect } from './dialect.ts';
import { nullable, ScoredDocument, Topk, Truncated } from './parts/common-fields.ts';
import { refuse } from './parts/questions.ts';
import { resultOf } from './parts/reply-fields.ts';
import { resultLists, scoredHit, truncatedMember } from './parts/result-lists.ts';
import { hitsOf, searchPlan, separated } from './parts/search-plan.ts';
import { searchR1Rerank } from './rerank/search-r1-rerank.ts';
import { methodOf } from './rllm.ts';

/**
 * rLLM's server before May 2026: one query or a batch, always with scores. Unlike that server, Trawl does not answer errors with
 * status 200, and answers an empty batch with an empty list.
 */
export const rllmLegacy = defineDialect({
  name: 'rllm-legacy',
  path: '/retrieve',
  summary: "A single query or a batch, always with scores (rLLM's older server)",
  projects: [{ name: 'rLLM before May 2026' }],
  onlyIfNamed: true,
  holdMs: 25_000,
  request: Type.Object({
    query: nullable(Type.String(), 'The query. It takes precedence over queries.'),
    queries: nullable(Type.Array(Type.String()), 'A batch of queries.'),
    topk: Topk,
    top_k: Topk,
    k: Topk,
  }),
  reply: Type.Union([
    Type.Object({
      query: Type.String(),
      method: Type.String(),
      results: Type.Array(ScoredDocument),
      num_results: Type.Integer(),
      truncated: Truncated,
    }),
    Type.Object({
      method: Type.String(),
      batch_size: Type.Integer(),
      result: Type.Array(Type.Array(ScoredDocument)),
      truncated: Truncated,
    }),
  ]),
  example: { query: 'who designed the Brooklyn Bridge', topk: 3 },
  // Search-R1's requests for reranking have fields that this server does not know.
  claims: (body) => !searchR1Rerank.claims(body, false),
  client: {
    batch: true,
    ids: true,
    texts: 'apart',
    request: (queries, k) => ({ queries, topk: k, return_scores: true }),
    lists: resultOf,
  },
  plan({ query, queries, topk, top_k, k }, limits) {
    const texts = query === null ? queries : [query];
    if (texts === null) return refuse(['query'], 'Missing query or queries');
    const search = { queries: texts, k: topk || top_k || k || limits.topk, kField: 'topk', limits };
    return searchPlan(search, (result) => (query === null ? batch(result) : single(query, result)));
  },
});

function* single(query: string, { outcomes }: RetrieveResult): Generator<string> {
  const hits = hitsOf(outcomes[0]!, 0);
  yield `{"query":${JSON.stringify(query)},"method":"${methodOf(outcomes)}","results":[`;
  yield* separated(hits, scoredHit);
  yield `],"num_results":${hits.length}${truncatedMember(outcomes)}}`;
}

function batch({ outcomes }: RetrieveResult): Iterable<string> {
  return resultLists(outcomes, scoredHit, `"method":"${methodOf(outcomes)}","batch_size":${outcomes.length},`);
}
