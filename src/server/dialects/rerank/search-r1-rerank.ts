import { type Static, Type } from 'typebox';
import { documentFields } from '../../../index/passages/document-fields.ts';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import { DEFAULT_RERANK_DEPTH } from '../../../search/calls/retrieve-call.ts';
import type { RequestLimits } from '../../server-config.ts';
import { defineDialect, type Plan } from '../dialect.ts';
import { nullable, Queries, ResultLists, ReturnScores, Score } from '../parts/common-fields.ts';
import { field, isJsonObject } from '../parts/read-request.ts';
import { resultOf } from '../parts/reply-fields.ts';
import { bareHit, resultLists, scoredHit } from '../parts/result-lists.ts';
import { refuseTooLargeK, searchPlan } from '../parts/search-plan.ts';

const TOPK_RETRIEVAL = 10;
const TOPK_RERANK = 3;

const Request = Type.Object({
  queries: Queries,
  topk_retrieval: {
    ...nullable(Type.Integer({ minimum: 0 }), "Passages per query to rerank. null or 0: the server's depth."),
    default: TOPK_RETRIEVAL as number | null,
  },
  topk_rerank: {
    ...nullable(Type.Integer({ minimum: 0 }), 'Passages per query. null or 0: all that were reranked.'),
    default: TOPK_RERANK as number | null,
  },
  return_scores: ReturnScores,
});

const example = { queries: ['who designed the Brooklyn Bridge'], topk_retrieval: 10, topk_rerank: 3 };

/**
 * Search-R1's server that reranks (`retrieval_rerank_server.py`). Its hits are documents as on Search-R1's other server; the original
 * returns texts, on which Search-R1's own clients fail.
 */
export const searchR1Rerank = defineDialect({
  name: 'search-r1-rerank',
  path: '/retrieve',
  summary: 'A batch of queries with reranking (Search-R1)',
  recognisedBy: '`topk_retrieval` or `topk_rerank`',
  projects: [{ name: 'Search-R1 with reranking' }],
  holdMs: Number.POSITIVE_INFINITY,
  request: Request,
  reply: ResultLists,
  example,
  claims,
  client: {
    batch: true,
    ids: true,
    texts: 'apart',
    request: rerankRequest,
    lists: resultOf,
  },
  plan: (request, limits) => plan(request, limits, request.return_scores ? scoredHit : bareHit),
});

/** The same with the texts of the original, for clients that were written for it. */
export const searchR1RerankText = defineDialect({
  name: 'search-r1-rerank-text',
  path: '/retrieve',
  summary: 'A batch of queries with reranking, passages as texts (Search-R1)',
  section: 'search-r1-rerank',
  onlyIfNamed: true,
  holdMs: Number.POSITIVE_INFINITY,
  request: Request,
  reply: Type.Object({
    result: Type.Array(
      Type.Array(Type.Union([Type.String(), Type.Object({ document: Type.String(), score: Score })])),
      {
        description: 'One list per query, best first. Without return_scores the entries are texts.',
      },
    ),
  }),
  example,
  claims,
  client: {
    batch: true,
    ids: false,
    texts: 'joined',
    request: rerankRequest,
    lists: resultOf,
  },
  plan: (request, limits) => plan(request, limits, request.return_scores ? scoredText : bareText),
});

function rerankRequest(queries: readonly string[], k: number) {
  return { queries, topk_retrieval: Math.max(k, TOPK_RETRIEVAL), topk_rerank: k, return_scores: true };
}

function claims(body: unknown): boolean {
  return (
    isJsonObject(body) &&
    field(body, 'queries') !== undefined &&
    ['topk_retrieval', 'topk_rerank'].some((name) => field(body, name) !== undefined)
  );
}

function plan(request: Static<typeof Request>, limits: RequestLimits, hitText: (hit: Hit) => string): Plan {
  const { queries, topk_retrieval, topk_rerank } = request;
  return rerankedSearch({ queries, depth: topk_retrieval, k: topk_rerank, limits }, hitText);
}

/** A search whose hits are reranked. `depth` and `k`: null or 0 for the server's depth, and for all hits that were reranked. */
export function rerankedSearch(
  {
    queries,
    depth: wanted,
    k,
    limits,
  }: { queries: readonly string[]; depth: number | null; k: number | null; limits: RequestLimits },
  hitText: (hit: Hit) => string,
): Plan {
  const depth = wanted || (limits.rerank?.depth ?? DEFAULT_RERANK_DEPTH);
  refuseTooLargeK(depth, 'topk_retrieval', queries.length, limits);
  const search = {
    queries,
    k: Math.min(k || depth, depth),
    kField: 'topk_rerank',
    limits: { ...limits, rerank: { ...limits.rerank, depth } },
  };
  return searchPlan(search, ({ outcomes }) => resultLists(outcomes, hitText));
}

export function scoredText(hit: Hit): string {
  return `{"document":${bareText(hit)},"score":${JSON.stringify(hit.score)}}`;
}

function bareText({ document }: Hit): string {
  return JSON.stringify(documentFields(document).contents);
}
