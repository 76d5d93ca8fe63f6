import type { DialectClient } from '../dialect-client.ts';
import { list, text, textPassage } from '../reply-fields.ts';

/** SearchAgent-X: texts without ids. */
export const searchAgentXClient: DialectClient = {
  name: 'searchagent-x',
  path: '/embed_and_retrieve',
  batch: true,
  request: (prompts, k) => ({ prompts, top_k: k }),
  lists: (reply) => list(reply, 'neighbor_texts').map((hits) => list(hits).map((hit) => textPassage(text(hit)))),
};
