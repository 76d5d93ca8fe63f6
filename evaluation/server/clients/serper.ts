import type { DialectClient } from '../dialect-client.ts';
import { list, member, textOrNone } from '../reply-fields.ts';

/** Serper's web search: titles and snippets without ids. */
export const serperClient: DialectClient = {
  name: 'serper',
  path: '/search',
  batch: false,
  request: ([q], k) => ({ q, num: k }),
  lists: (reply) => [
    list(reply, 'organic').map((hit) => ({
      id: undefined,
      title: textOrNone(member(hit, 'title')),
      contents: textOrNone(member(hit, 'snippet')) ?? '',
      score: undefined,
    })),
  ],
};
