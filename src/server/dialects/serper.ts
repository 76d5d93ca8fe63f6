import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import { passageName } from '../documents/passage-name.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import { defineDialect } from './dialect.ts';
import { Query } from './parts/common-fields.ts';
import { excerptPassage, list } from './parts/reply-fields.ts';
import { hitsOf, searchPlan, separated } from './parts/search-plan.ts';

/** Length of a snippet. Serper's own are shorter, but a passage of a hundred words should come back whole. */
const SNIPPET_CHARACTERS = 1_000;

/**
 * Serper's web search, over the passages of the index, for agents that search the web with it (WebSailor, DeepResearch). A passage
 * without a URL has a link that MCP's `fetch` accepts.
 */
export const serper = defineDialect({
  name: 'serper',
  path: '/search',
  summary: 'A query as q, answered like a web search (Serper)',
  projects: [
    {
      name: 'WebSailor, WebDancer, DeepResearch (Serper)',
      setting: 'the URL of Serper in their code: `http://HOST:8000/search`',
    },
  ],
  // The shortest limit of its clients is 30 s.
  holdMs: 25_000,
  request: Type.Object({
    q: Query,
    num: Type.Integer({ minimum: 1, default: 10, description: 'Hits per page.' }),
    page: Type.Integer({ minimum: 1, default: 1, description: 'Which page of hits.' }),
  }),
  reply: Type.Object({
    searchParameters: Type.Object({ q: Type.String(), type: Type.String(), num: Type.Integer(), page: Type.Integer() }),
    organic: Type.Array(
      Type.Object({
        title: Type.String(),
        link: Type.String({ description: "The passage's own URL, or trawl://INDEX/ID." }),
        snippet: Type.String({ description: 'The part of the passage with the most words of the query.' }),
        date: Type.Optional(Type.String({ description: "The passage's column date." })),
        position: Type.Integer({ description: 'Rank, from 1.' }),
      }),
    ),
  }),
  example: { q: 'who designed the Brooklyn Bridge', num: 3 },
  keys: ['q'],
  client: {
    batch: false,
    hit: ['title', 'excerpt'],
    request: ([q], k) => ({ q, num: k }),
    lists: (reply) => [list(reply, 'organic').map((hit) => excerptPassage(hit, 'snippet'))],
  },
  plan({ q, num, page }, limits) {
    const first = num * (page - 1);
    const search = { queries: [q], k: first + num, kField: page === 1 ? 'num' : 'page', limits };
    return searchPlan(search, function* ({ outcomes }, { index }) {
      const words = wordsOf(q);
      yield `{"searchParameters":${JSON.stringify({ q, type: 'search', num, page })},"organic":[`;
      yield* separated(hitsOf(outcomes[0]!, 0).slice(first), ({ row, document }, i) => {
        const fields = documentFields(document);
        const { title, url } = passageName(index, row, fields);
        const snippet = excerpt(fields.text === '' ? fields.contents : fields.text, words, SNIPPET_CHARACTERS).text;
        return JSON.stringify({ title, link: url, snippet, date: fields.date, position: first + i + 1 });
      });
      yield ']}';
    });
  },
});
