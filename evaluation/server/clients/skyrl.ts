import type { DialectClient } from '../dialect-client.ts';
import { documentHit, list } from '../reply-fields.ts';

/** SkyRL's gym: one query, answered as Search-R1 answers a batch of one. */
export const skyrlClient: DialectClient = {
  name: 'skyrl',
  path: '/retrieve',
  batch: false,
  request: ([query], k) => ({ query, topk: k, return_scores: true }),
  lists: (reply) => list(reply, 'result').map((hits) => list(hits).map(documentHit)),
};
