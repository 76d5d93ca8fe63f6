import type { DialectClient } from '../dialect-client.ts';
import { list, member, textOrNone } from '../reply-fields.ts';

/** OpenResearcher: titles and summaries without ids. */
export const openResearcherClient: DialectClient = {
  name: 'openresearcher',
  path: '/search',
  batch: false,
  excerpts: true,
  request: ([query], k) => ({ query, topn: k }),
  lists: (reply) => [
    list(reply, 'results').map((hit) => {
      const text = textOrNone(member(hit, 'summary')) ?? '';
      return { id: undefined, title: textOrNone(member(hit, 'title')), contents: text, text, score: undefined };
    }),
  ],
};
