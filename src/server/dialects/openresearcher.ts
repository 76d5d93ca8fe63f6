import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import { defineDialect } from './dialect.ts';
import { count, Query } from './parts/common-fields.ts';
import { documentPlan, linkedPagePlan } from './parts/document-plan.ts';
import { excerptPassage, list } from './parts/reply-fields.ts';
import { pieces, separated } from './parts/search-plan.ts';

/** Length of a summary, as in the original. */
const SUMMARY_CHARACTERS = 180;

/** OpenResearcher: distinct documents with a short summary. The original drops documents without a URL after the search. */
export const openResearcher = defineDialect({
  name: 'openresearcher',
  path: '/search',
  summary: 'Pages for a query with topn (OpenResearcher)',
  projects: [{ name: 'OpenResearcher', setting: '`http://HOST:8000` as its argument search_url' }],
  // The client's limit is 300 s.
  holdMs: 290_000,
  request: Type.Object({ query: Query, topn: count(10, 'Documents') }),
  reply: Type.Object({
    results: Type.Array(
      Type.Object({
        url: Type.String({ description: 'The column url, or trawl://INDEX/ID.' }),
        title: Type.String(),
        summary: Type.String({
          description: "The part of the document's best passage with the most words of the query.",
        }),
      }),
      { description: 'Distinct documents, by their best passage, best first.' },
    ),
  }),
  example: { query: 'who designed the Brooklyn Bridge', topn: 3 },
  keys: ['topn'],
  client: {
    batch: false,
    hit: ['title', 'excerpt'],
    request: ([query], k) => ({ query, topn: k }),
    lists: (reply) => [list(reply, 'results').map((hit) => excerptPassage(hit, 'summary'))],
  },
  plan({ query, topn }, limits) {
    return documentPlan({ queries: [query], k: topn, kField: 'topn', limits }, ({ found }) => {
      const words = wordsOf(query);
      const hits = separated(found, ({ document: { url, title }, hit }) => {
        const { text, contents } = documentFields(hit.document);
        const summary = excerpt(text === '' ? contents : text, words, SUMMARY_CHARACTERS).text;
        return JSON.stringify({ url, title, summary });
      });
      return pieces`{"results":[${hits}]}`;
    });
  },
});

/** OpenResearcher's page: one document by URL. */
export const openResearcherContent = defineDialect({
  name: 'openresearcher-content',
  path: '/get_content',
  summary: 'A whole document by URL (OpenResearcher)',
  section: 'openresearcher',
  holdMs: 290_000,
  request: Type.Object({ url: Type.String({ description: 'As in a hit.' }) }),
  reply: Type.Object({ title: Type.String(), content: Type.String() }),
  example: { url: 'Brooklyn Bridge' },
  plan: ({ url }, limits) => linkedPagePlan(url, limits, ({ title, text }) => JSON.stringify({ title, content: text })),
});
