import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import { openingOfDocument } from '../documents/openings.ts';
import { documentsByName } from '../documents/whole-document.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import { defineDialect } from './dialect.ts';
import { Query } from './parts/common-fields.ts';
import { documentPlan } from './parts/document-plan.ts';
import { excerptPassage, list } from './parts/reply-fields.ts';
import { separated } from './parts/search-plan.ts';

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
  request: Type.Object({
    query: Query,
    topn: Type.Integer({ minimum: 0, default: 10, description: 'Documents; 0 returns none.' }),
  }),
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
    ids: false,
    texts: 'excerpt',
    request: ([query], k) => ({ query, topn: k }),
    lists: (reply) => [list(reply, 'results').map((hit) => excerptPassage(hit, 'summary'))],
  },
  plan({ query, topn }, limits) {
    return documentPlan({ queries: [query], k: topn, kField: 'topn', limits }, function* ({ found }) {
      const words = wordsOf(query);
      yield '{"results":[';
      yield* separated(found, ({ document: { url, title }, hit }) => {
        const { text, contents } = documentFields(hit.document);
        const summary = excerpt(text === '' ? contents : text, words, SUMMARY_CHARACTERS).text;
        return JSON.stringify({ url, title, summary });
      });
      yield ']}';
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
  client: null,
  plan({ url }, limits) {
    return {
      queries: 1,
      k: 1,
      async run(retriever, signal) {
        const options = { limit: limits.maxK, signal, slice: new TimeSlice(signal) };
        const { documents, timings } = await documentsByName(retriever, [{ url }], options);
        const [document] = documents;
        if (document === undefined) {
          throw new TrawlError(
            'NOT_FOUND',
            `No document has the URL ${JSON.stringify(url.slice(0, 200))}. Open a URL of the search results.`,
          );
        }
        const pieces = [JSON.stringify({ title: document.title, content: document.text })];
        const openings = [openingOfDocument(url, document)];
        return { timings, search: null, openings, truncated: 0, pieces };
      },
    };
  },
});
