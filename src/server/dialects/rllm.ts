import { Type } from 'typebox';
import { withContents } from '../../index/passages/contents.ts';
import { type Hit, hasOtherHits, type QueryOutcome } from '../../search/calls/query-outcome.ts';
import { defineDialect } from './dialect.ts';
import {
  count,
  Document,
  nullable,
  nullableCount,
  Query,
  refuse,
  Score,
  ScoredDocument,
  Topk,
  Truncated,
} from './parts/common-fields.ts';
import { hasField } from './parts/read-request.ts';
import { list, member, resultOf, rowPassage } from './parts/reply-fields.ts';
import {
  hitsOf,
  resultLists,
  scoredHit,
  scoreHit,
  searchPlan,
  separated,
  truncatedMember,
} from './parts/search-plan.ts';
import { searchR1Rerank } from './rerank/search-r1-rerank.ts';
import { skyrl } from './skyrl.ts';

/**
 * rLLM (deepresearch example): one query with `top_k` or `k`, by which it differs from SkyRL's request. A hit's `id` is its rank
 * ("doc_1"), and `content` is the whole row, of which the client uses `contents`.
 */
export const rllm = defineDialect({
  name: 'rllm',
  path: '/retrieve',
  summary: 'A single query with top_k or k (rLLM)',
  recognisedBy: 'a string `query` with `top_k` or `k`, without `topk` and `return_scores`',
  projects: [{ name: 'rLLM', setting: '[`RETRIEVAL_SERVER_URL`](#rllm)' }],
  // The client's limit is 30 s; it asks each of its servers once.
  holdMs: 25_000,
  request: Type.Object({
    query: Query,
    top_k: count(10, 'Number of passages'),
    k: nullableCount('The same. It takes precedence over top_k.'),
  }),
  reply: Type.Object({
    query: Type.String(),
    method: Type.String(),
    results: Type.Array(
      Type.Object({
        id: Type.String({ description: 'The rank, not the id of the passage.' }),
        content: Document,
        score: Score,
      }),
    ),
    num_results: Type.Integer(),
    truncated: Truncated,
  }),
  example: { query: 'who designed the Brooklyn Bridge', top_k: 3 },
  claims: claimsSingleQuery,
  client: {
    batch: false,
    hit: ['id', 'title', 'text'],
    request: ([query], k) => ({ query, top_k: k }),
    lists: (reply) => [list(reply, 'results').map((hit) => rowPassage(member(hit, 'content'), member(hit, 'score')))],
  },
  plan({ query, top_k, k }, limits) {
    const search = { queries: [query], k: k ?? top_k, kField: k === null ? 'top_k' : 'k', limits };
    const hitText = (hit: Hit, i: number): string =>
      `{"id":"doc_${i + 1}","content":${withContents(hit.document)},"score":${scoreHit(hit)}}`;
    return searchPlan(search, ({ outcomes }) => singleReply(query, outcomes, hitText));
  },
});

/** A single query with `top_k` or `k`, as rLLM and ZeroSearch send it. A preferred dialect also claims one without them. */
export function claimsSingleQuery(body: unknown, named: boolean): boolean {
  if (!skyrl.claims(body, false) || hasField(body, 'topk', 'return_scores')) return false;
  return named || hasField(body, 'top_k', 'k');
}

function* singleReply(
  query: string,
  outcomes: readonly QueryOutcome[],
  hitText: (hit: Hit, i: number) => string,
): Generator<string> {
  const hits = hitsOf(outcomes[0]!, 0);
  yield `{"query":${JSON.stringify(query)},"method":"${methodOf(outcomes)}","results":[`;
  yield* separated(hits, hitText);
  yield `],"num_results":${hits.length}${truncatedMember(outcomes)}}`;
}

/**
 * The name of the method in replies of rLLM's servers, for all queries of a reply. A perturbed answer, and one that an approximate index
 * found, is not exact.
 */
function methodOf(outcomes: readonly QueryOutcome[]): string {
  const isExact = outcomes.every(
    (outcome) => !outcome.ok || (outcome.certificate.exact && !hasOtherHits(outcome.perturbed)),
  );
  return isExact ? 'dense_exact' : 'dense';
}

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
    hit: ['id', 'title', 'text'],
    request: (queries, k) => ({ queries, topk: k, return_scores: true }),
    lists: resultOf,
  },
  plan({ query, queries, topk, top_k, k }, limits) {
    const texts = query === null ? queries : [query];
    if (texts === null) return refuse(['query'], 'Missing query or queries');
    const search = { queries: texts, k: topk || top_k || k || limits.topk, kField: 'topk', limits };
    return searchPlan(search, ({ outcomes }) =>
      query === null
        ? resultLists(outcomes, scoredHit, `"method":"${methodOf(outcomes)}","batch_size":${outcomes.length},`)
        : singleReply(query, outcomes, scoredHit),
    );
  },
});
