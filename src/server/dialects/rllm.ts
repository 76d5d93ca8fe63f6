import { Type } from 'typebox';
import { withContents } from '../../index/passages/contents.ts';
import { hasOtherHits, type QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { RetrieveResult } from '../../search/calls/retrieve-call.ts';
import { defineDialect } from './dialect.ts';
import { Document, nullable, Query, Score, Truncated } from './parts/common-fields.ts';
import { field, isJsonObject } from './parts/read-request.ts';
import { list, member, rowPassage } from './parts/reply-fields.ts';
import { truncatedMember } from './parts/result-lists.ts';
import { hitsOf, searchPlan, separated } from './parts/search-plan.ts';
import { skyrl } from './skyrl.ts';

const METHOD = 'dense_exact';
/** Of an answer that was perturbed, or that an approximate index found. */
const INEXACT_METHOD = 'dense';

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
    top_k: Type.Integer({ minimum: 0, default: 10, description: 'Number of passages; 0 returns none.' }),
    k: nullable(Type.Integer({ minimum: 0 }), 'The same. It takes precedence over top_k.'),
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
  claims: isSingleByTopK,
  client: {
    batch: false,
    ids: true,
    texts: 'apart',
    request: ([query], k) => ({ query, top_k: k }),
    lists: (reply) => [list(reply, 'results').map((hit) => rowPassage(member(hit, 'content'), member(hit, 'score')))],
  },
  plan({ query, top_k, k }, limits) {
    const search = { queries: [query], k: k ?? top_k, kField: k === null ? 'top_k' : 'k', limits };
    return searchPlan(search, (result) => reply(query, result));
  },
});

/** A single query with `top_k` or `k`, as rLLM and ZeroSearch send it. A preferred dialect also claims one without them. */
export function isSingleByTopK(body: unknown, named: boolean): boolean {
  if (!isJsonObject(body) || !skyrl.claims(body, false)) return false;
  const has = (name: string): boolean => field(body, name) !== undefined;
  if (has('topk') || has('return_scores')) return false;
  return named || has('top_k') || has('k');
}

function* reply(query: string, { outcomes }: RetrieveResult): Generator<string> {
  const hits = hitsOf(outcomes[0]!, 0);
  yield `{"query":${JSON.stringify(query)},"method":"${methodOf(outcomes)}","results":[`;
  yield* separated(
    hits,
    (hit, i) => `{"id":"doc_${i + 1}","content":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`,
  );
  yield `],"num_results":${hits.length}${truncatedMember(outcomes)}}`;
}

/** The name of the method in replies of rLLM's servers, for all queries of a reply. */
export function methodOf(outcomes: readonly QueryOutcome[]): string {
  const isExact = outcomes.every(
    (outcome) => !outcome.ok || (outcome.certificate.exact && !hasOtherHits(outcome.perturbed)),
  );
  return isExact ? METHOD : INEXACT_METHOD;
}
