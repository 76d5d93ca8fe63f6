import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { defineDialect, type ServerPassage } from './dialect.ts';
import { Contents, nullableCount, Query, Score } from './parts/common-fields.ts';
import { idText, list, member, scoreOf, text, textOrNone, textPassage } from './parts/reply-fields.ts';
import { hitLists, searchPlan } from './parts/search-plan.ts';
import { claimsSingleQuery } from './rllm.ts';

/** ZeroSearch's wiki mode: rLLM's request, answered with a list; the client uses each item's `text`. */
export const zeroSearch = defineDialect({
  name: 'zerosearch',
  path: '/retrieve',
  summary: 'A single query, answered with a list (ZeroSearch)',
  projects: [
    {
      name: 'ZeroSearch',
      setting: '`retriever.retriever_ip=HOST`; it always uses port 6002. Serve with `--listen 6002=zerosearch`',
    },
  ],
  onlyIfNamed: true,
  // The client has no time limit, and gives up after ten refusals in ten seconds.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    query: Query,
    top_k: nullableCount("Number of passages. Absent or null: the server's default."),
    k: nullableCount('The same. It takes precedence over top_k.'),
  }),
  reply: Type.Array(
    Type.Object({
      id: Type.Optional(Type.Unknown()),
      title: Type.Optional(Type.String()),
      text: Contents,
      score: Score,
    }),
  ),
  example: { query: 'who designed the Brooklyn Bridge', top_k: 3 },
  claims: claimsSingleQuery,
  client: {
    batch: false,
    hit: ['id', 'contents'],
    request: ([query], k) => ({ query, top_k: k }),
    lists: (reply) => [list(reply).map(readHit)],
  },
  plan({ query, top_k, k }, limits) {
    const search = { queries: [query], k: k ?? top_k ?? limits.topk, kField: 'top_k', limits };
    return searchPlan(search, ({ outcomes }) => hitLists(outcomes, hitText));
  },
});

function hitText({ document, score }: Hit): string {
  const { idJson, title, contents } = documentFields(document);
  const id = idJson === undefined ? '' : `"id":${idJson},`;
  const titleMember = title === undefined ? '' : `"title":${JSON.stringify(title)},`;
  return `{${id}${titleMember}"text":${JSON.stringify(contents)},"score":${JSON.stringify(score)}}`;
}

function readHit(hit: unknown): ServerPassage {
  const passage = textPassage(text(member(hit, 'text')));
  return {
    ...passage,
    id: idText(member(hit, 'id')),
    title: textOrNone(member(hit, 'title')) ?? passage.title,
    score: scoreOf(member(hit, 'score')),
  };
}
