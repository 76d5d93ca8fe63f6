import { Type } from 'typebox';
import { withContents } from '../../passages/contents.ts';
import type { RetrieveResult } from '../../retrieval/retriever.ts';
import { Document, nullable, Query, Score, Truncated } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { field, isJsonObject } from './read-request.ts';
import { truncatedMember } from './result-lists.ts';
import { hitsOf, searchPlan, separated } from './search-plan.ts';
import { skyrl } from './skyrl.ts';

const METHOD = 'dense_exact';

/**
 * rLLM (deepresearch example): one query, told from SkyRL's by `top_k` or `k`. A hit's `id` is its rank ("doc_1"), and
 * `content` is the whole row, in which the client reads `contents`.
 */
export const rllm = defineDialect({
  name: 'rllm',
  path: '/retrieve',
  summary: 'A single query with top_k or k (rLLM)',
  request: Type.Object({
    query: Query,
    top_k: Type.Integer({ minimum: 0, default: 10, description: 'Passages; 0 gets none.' }),
    k: nullable(Type.Integer({ minimum: 0 }), 'The same; counts before top_k.'),
  }),
  reply: Type.Object({
    query: Type.String(),
    method: Type.String(),
    results: Type.Array(
      Type.Object({ id: Type.String({ description: 'The rank, not the id.' }), content: Document, score: Score }),
    ),
    num_results: Type.Integer(),
    truncated: Truncated,
  }),
  example: { query: 'who designed the Brooklyn Bridge', top_k: 3 },
  claims: isSingleByTopK,
  plan({ query, top_k, k }, limits) {
    const search = { queries: [query], k: k ?? top_k, kField: k === null ? 'top_k' : 'k', limits };
    return searchPlan(search, (result) => reply(query, result));
  },
});

/** A single query that says its number as rLLM and ZeroSearch do; of one that says none, a dialect named by its name. */
export function isSingleByTopK(body: unknown, named: boolean): boolean {
  if (!isJsonObject(body) || !skyrl.claims(body, false)) return false;
  const says = (name: string): boolean => field(body, name) !== undefined;
  if (says('topk') || says('return_scores')) return false;
  return named || says('top_k') || says('k');
}

function* reply(query: string, { outcomes }: RetrieveResult): Generator<string> {
  const hits = hitsOf(outcomes[0]!, 0);
  yield `{"query":${JSON.stringify(query)},"method":"${METHOD}","results":[`;
  yield* separated(
    hits,
    (hit, i) => `{"id":"doc_${i + 1}","content":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`,
  );
  yield `],"num_results":${hits.length}${truncatedMember(outcomes)}}`;
}
