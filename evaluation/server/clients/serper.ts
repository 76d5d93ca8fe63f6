import type { DialectClient } from '../dialect-client.ts';
import { list, member, textOrNone } from '../reply-fields.ts';

/** Serper's web search: titles and snippets without ids. */
export const serperClient: DialectClient = {
  name: 'serper',
  path: '/search',
  batch: false,
  excerpts: true,
  request: ([q], k) => ({ q, num: k }),
  lists: (reply) => [
    list(reply, 'organic').map((hit) => {
      const text = textOrNone(member(hit, 'snippet')) ?? '';
      return { id: undefined, title: textOrNone(member(hit, 'title')), contents: text, text, score: undefined };
    }),
  ],
};
