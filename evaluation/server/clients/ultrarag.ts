import type { DialectClient } from '../dialect-client.ts';
import { list, text, textPassage } from '../reply-fields.ts';

/** UltraRAG: texts without ids. */
export const ultraRagClient: DialectClient = {
  name: 'ultrarag',
  path: '/search',
  batch: true,
  request: (queries, k) => ({ query_list: queries, top_k: k, query_instruction: '' }),
  lists: (reply) => list(reply, 'ret_psg').map((hits) => list(hits).map((hit) => textPassage(text(hit)))),
};
