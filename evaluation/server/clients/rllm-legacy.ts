import type { DialectClient } from '../dialect-client.ts';
import { documentHit, list } from '../reply-fields.ts';

/** rLLM before May 2026: a batch, answered as by Search-R1. */
export const rllmLegacyClient: DialectClient = {
  name: 'rllm-legacy',
  path: '/retrieve',
  batch: true,
  request: (queries, k) => ({ queries, topk: k, return_scores: true }),
  lists: (reply) => list(reply, 'result').map((hits) => list(hits).map(documentHit)),
};
