import { type Static, Type } from 'typebox';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import { DEFAULT_RERANK_DEPTH } from '../../../search/calls/retrieve-call.ts';
import type { RequestLimits } from '../../server-config.ts';
import { defineDialect, type Plan } from '../dialect.ts';
import { nullableCount, Queries, ResultLists, ReturnScores, TextLists } from '../parts/common-fields.ts';
import { hasField } from '../parts/read-request.ts';
import { resultOf } from '../parts/reply-fields.ts';
import {
  bareHit,
  refuseTooLargeK,
  resultLists,
  scoredHit,
  scoreHit,
  searchPlan,
  textHit,
} from '../parts/search-plan.ts';

/** Passages per query to rerank, as the original servers choose them. */
export const TOPK_RETRIEVAL = 10;
export const TopkRetrieval = nullableCount(
  "Passages per query to rerank. null or 0: the server's depth.",
  TOPK_RETRIEVAL,
);

const Request = Type.Object({
  queries: Queries,
  topk_retrieval: TopkRetrieval,
  topk_rerank: nullableCount('Passages per query. null or 0: all that were reranked.', 3),
  return_scores: ReturnScores,
});

const parts = {
  path: '/retrieve',
  holdMs: Number.POSITIVE_INFINITY,
  request: Request,
  example: { queries: ['who designed the Brooklyn Bridge'], topk_retrieval: 10, topk_rerank: 3 },
  claims: (body: unknown) => hasField(body, 'queries') && hasField(body, 'topk_retrieval', 'topk_rerank'),
} as const;

const client = {
  batch: true,
  request: (queries: readonly string[], k: number) => ({
    queries,
    topk_retrieval: Math.max(k, TOPK_RETRIEVAL),
    topk_rerank: k,
    return_scores: true,
  }),
  lists: resultOf,
} as const;

/**
 * Search-R1's server that reranks (`retrieval_rerank_server.py`). Its hits are documents as on Search-R1's other server; the original
 * returns texts, on which Search-R1's own clients fail.
 */
export const searchR1Rerank = defineDialect({
  ...parts,
  name: 'search-r1-rerank',
  summary: 'A batch of queries with reranking (Search-R1)',
  recognisedBy: '`topk_retrieval` or `topk_rerank`',
  projects: [{ name: 'Search-R1 with reranking' }],
  reply: ResultLists,
  client: { ...client, hit: ['id', 'title', 'text'] },
  plan: (request, limits) => plan(request, limits, request.return_scores ? scoredHit : bareHit),
});

/** The same with the texts of the original, for clients that were written for it. */
export const searchR1RerankText = defineDialect({
  ...parts,
  name: 'search-r1-rerank-text',
  summary: 'A batch of queries with reranking, passages as texts (Search-R1)',
  section: 'search-r1-rerank',
  onlyIfNamed: true,
  reply: TextLists,
  client: { ...client, hit: ['contents'] },
  plan: (request, limits) => plan(request, limits, request.return_scores ? scoredText : textHit),
});

function plan(request: Static<typeof Request>, limits: RequestLimits, hitText: (hit: Hit) => string): Plan {
  const { queries, topk_retrieval: depth, topk_rerank: k } = request;
  return rerankedSearch({ queries, depth, k }, limits, hitText);
}

/** A search whose hits are reranked. `depth` and `k`: null or 0 for the server's depth, and for all hits that were reranked. */
export function rerankedSearch(
  wanted: { readonly queries: readonly string[]; readonly depth: number | null; readonly k: number | null },
  limits: RequestLimits,
  hitText: (hit: Hit) => string,
): Plan {
  const { queries } = wanted;
  const depth = wanted.depth || (limits.rerank?.depth ?? DEFAULT_RERANK_DEPTH);
  refuseTooLargeK(depth, 'topk_retrieval', queries.length, limits);
  const k = Math.min(wanted.k || depth, depth);
  const search = { queries, k, kField: 'topk_rerank', limits: { ...limits, rerank: { ...limits.rerank, depth } } };
  return searchPlan(search, ({ outcomes }) => resultLists(outcomes, hitText));
}

export function scoredText(hit: Hit): string {
  return `{"document":${textHit(hit)},"score":${scoreHit(hit)}}`;
}
