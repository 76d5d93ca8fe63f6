import { type Static, Type } from 'typebox';
import { type DocumentFields, documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { passageName } from '../documents/passage-name.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import type { RequestLimits } from '../server-config.ts';
import { defineDialect, type Plan } from './dialect.ts';
import { Query } from './parts/common-fields.ts';
import { linkedPagePlan } from './parts/document-plan.ts';
import { hasField } from './parts/read-request.ts';
import { excerptPassage, list } from './parts/reply-fields.ts';
import { hitsOf, pieces, searchPlan, separated } from './parts/search-plan.ts';

/** Length of a snippet. Serper's own are shorter, but a passage of a hundred words should come back whole. */
const SNIPPET_CHARACTERS = 1_000;

const Search = Type.Object({
  q: Query,
  num: Type.Integer({ minimum: 1, default: 10, description: 'Hits per page.' }),
  page: Type.Integer({ minimum: 1, default: 1, description: 'Which page of hits.' }),
});

const Title = Type.String();
const Link = Type.String({ description: "The passage's own URL, or trawl://INDEX/ID." });
const Snippet = Type.String({ description: 'The part of the passage with the most words of the query.' });

const parts = {
  // The shortest limit of its clients is 30 s.
  holdMs: 25_000,
  request: Type.Union([Search, Type.Array(Search, { minItems: 1 })], {
    description: 'A search, or a list of them, which is answered with a list.',
  }),
  example: { q: 'who designed the Brooklyn Bridge', num: 3 },
} as const;

/**
 * Serper's web search, over the passages of the index, for agents that search the web with it (WebSailor, DeepResearch). A passage
 * without a URL has a link that `/reader`, `/scrape` and MCP's `fetch` accept.
 */
export const serper = defineDialect({
  ...parts,
  name: 'serper',
  path: '/search',
  summary: 'A query as q, answered like a web search (Serper)',
  recognisedBy: '`q`, or a list of objects with `q`',
  projects: [
    {
      name: 'WebSailor, WebDancer, DeepResearch, WideSeek-R1 (Serper)',
      setting: 'the URL of Serper in their code: `http://HOST:8000/search`',
      checkedAgainst: 'rlinf 0.3.0',
    },
  ],
  reply: repliesOf(
    Type.Object({
      title: Title,
      link: Link,
      snippet: Snippet,
      date: Type.Optional(Type.String({ description: "The passage's column date." })),
      position: Type.Integer({ description: 'Rank, from 1.' }),
    }),
  ),
  keys: ['q'],
  claims: (body, named) => named || (Array.isArray(body) && hasField(body[0], 'q')),
  client: {
    batch: false,
    hit: ['title', 'excerpt'],
    request: ([q], k) => ({ q, num: k }),
    lists: (reply) => [list(reply, 'organic').map((hit) => excerptPassage(hit, 'snippet'))],
  },
  plan: (request, limits) =>
    webSearchPlan(request, limits, 'search', ({ title, link, snippet, fields: { date }, position }) => ({
      title,
      link,
      snippet,
      date,
      position,
    })),
});

/** Serper's search of papers. */
export const serperScholar = defineDialect({
  ...parts,
  name: 'serper-scholar',
  path: '/scholar',
  summary: 'A query as q, answered like a search of papers (Serper)',
  section: 'serper',
  reply: repliesOf(
    Type.Object({
      title: Title,
      link: Link,
      pdfUrl: Type.String({ description: 'The same link, because DeepResearch reads no other.' }),
      snippet: Snippet,
      year: Type.Optional(Type.Integer({ description: "From the passage's column date." })),
    }),
  ),
  plan: (request, limits) =>
    webSearchPlan(request, limits, 'scholar', ({ title, link, snippet, fields: { date } }) => {
      const year = /^\d{4}(?!\d)/.exec(date ?? '')?.[0];
      return { title, link, pdfUrl: link, snippet, year: year === undefined ? undefined : Number(year) };
    }),
});

/** Serper's reader of pages, by the links of the hits. */
export const serperScrape = defineDialect({
  name: 'serper-scrape',
  path: '/scrape',
  summary: 'A whole document by URL (Serper)',
  section: 'serper',
  holdMs: 25_000,
  request: Type.Object({
    url: Type.String({ description: 'As in a hit.' }),
    includeMarkdown: Type.Boolean({ default: false, description: 'Whether the reply has the text as markdown, too.' }),
  }),
  reply: Type.Object({
    text: Type.String(),
    markdown: Type.Optional(Type.String()),
    metadata: Type.Object({ title: Title }),
    credits: Type.Integer(),
  }),
  example: { url: 'Brooklyn Bridge' },
  plan: ({ url, includeMarkdown }, limits) =>
    linkedPagePlan(url, limits, ({ title, text }) =>
      JSON.stringify({ text, markdown: includeMarkdown ? text : undefined, metadata: { title }, credits: 1 }),
    ),
});

interface WebHit {
  readonly title: string;
  readonly link: string;
  readonly snippet: string;
  readonly fields: DocumentFields;
  readonly position: number;
}

function webSearchPlan(
  request: Static<typeof parts.request>,
  limits: RequestLimits,
  type: 'search' | 'scholar',
  hitOf: (hit: WebHit) => object,
): Plan {
  const asked = [request].flat();
  const last = asked.map(({ num, page }) => num * page);
  const kField = asked.some(({ page }) => page > 1) ? 'page' : 'num';
  const search = { queries: asked.map(({ q }) => q), k: Math.max(...last), kField, limits };
  return searchPlan(search, ({ outcomes }, { index }) => {
    const replies = separated(asked, ({ q, num, page }, i) => {
      const first = num * (page - 1);
      const words = wordsOf(q);
      const hits = hitsOf(outcomes[i]!, i).slice(first, last[i]);
      const organic = hits.map(({ row, document }: Hit, at) => {
        const fields = documentFields(document);
        const { title, url } = passageName(index, row, fields);
        const snippet = excerpt(fields.text === '' ? fields.contents : fields.text, words, SNIPPET_CHARACTERS).text;
        return hitOf({ title, link: url, snippet, fields, position: first + at + 1 });
      });
      return JSON.stringify({ searchParameters: { q, type, num, page }, organic });
    });
    return Array.isArray(request) ? pieces`[${replies}]` : replies;
  });
}

function repliesOf<Item extends ReturnType<typeof Type.Object>>(hit: Item) {
  const reply = Type.Object({
    searchParameters: Type.Object({ q: Type.String(), type: Type.String(), num: Type.Integer(), page: Type.Integer() }),
    organic: Type.Array(hit),
  });
  return Type.Union([reply, Type.Array(reply)]);
}
