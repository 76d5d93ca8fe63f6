import type { DialectClient } from '../dialect-client.ts';
import { list, member, rowPassage } from '../reply-fields.ts';

/** rLLM. The `id` of a hit is its rank; the row of the corpus is its `content`. */
export const rllmClient: DialectClient = {
  name: 'rllm',
  path: '/retrieve',
  batch: false,
  request: ([query], k) => ({ query, top_k: k }),
  lists: (reply) => [list(reply, 'results').map((hit) => rowPassage(member(hit, 'content'), member(hit, 'score')))],
};
