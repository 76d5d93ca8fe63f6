import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { defineDialect } from './dialect.ts';
import { Contents, Queries, Score, Topk, Truncated } from './parts/common-fields.ts';
import { resultLists, scoreHit, searchPlan } from './parts/search-plan.ts';
import { searchR1 } from './search-r1.ts';

/** agent-lightning: Search-R1's batch with scores by default; without scores documents stay wrapped. */
export const agentLightning = defineDialect({
  name: 'agent-lightning',
  path: '/retrieve',
  summary: 'A batch of queries, with scores by default (agent-lightning)',
  projects: [
    {
      name: 'agent-lightning',
      setting:
        '`SEARCH_R1_RETRIEVAL_URL=http://HOST:8000/retrieve`; serve with [`--dialect agent-lightning`](dialects.md#agent-lightning)',
    },
  ],
  onlyIfNamed: true,
  // The client's limit is 30 s.
  holdMs: 25_000,
  request: Type.Object({
    queries: Queries,
    topk: Topk,
    return_scores: Type.Boolean({ default: true, description: 'Whether hits have scores.' }),
  }),
  reply: Type.Object({
    result: Type.Array(
      Type.Array(
        Type.Object({
          document: Type.Object({
            id: Type.Optional(Type.Unknown({ description: 'As in the corpus; the original leaves it out.' })),
            title: Type.String({ description: 'Empty if the passage has none.' }),
            text: Type.String(),
            contents: Contents,
          }),
          score: Type.Optional(Score),
        }),
      ),
      { description: 'One list per query, best first.' },
    ),
    truncated: Truncated,
  }),
  example: { queries: ['who designed the Brooklyn Bridge'], topk: 3 },
  claims: (body) => searchR1.claims(body, true),
  client: searchR1.client,
  plan({ queries, topk, return_scores }, limits) {
    const search = { queries, k: topk || limits.topk, kField: 'topk', limits };
    const hitText = (hit: Hit): string => {
      const score = return_scores ? `,"score":${scoreHit(hit)}` : '';
      return `{"document":${documentJson(hit.document)}${score}}`;
    };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, hitText));
  },
});

function documentJson(document: string): string {
  const { idJson, title = '', text, contents } = documentFields(document);
  const id = idJson === undefined ? '' : `"id":${idJson},`;
  return `{${id}${JSON.stringify({ title, text, contents }).slice(1)}`;
}
