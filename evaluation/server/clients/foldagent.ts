import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, text, textPassage } from '../reply-fields.ts';

/** FoldAgent: documents with their first words. */
export const foldAgentClient: DialectClient = {
  name: 'foldagent',
  path: '/search',
  batch: false,
  excerpts: true,
  request: ([query], k) => ({ query, k }),
  lists: (reply) => [
    (Array.isArray(reply) ? reply : list(reply, 'results')).map((hit) => ({
      ...textPassage(text(member(hit, 'text')), member(hit, 'score')),
      id: idText(member(hit, 'docid')),
    })),
  ],
};
