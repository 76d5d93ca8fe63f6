import type { DialectClient } from '../dialect-client.ts';
import { documentHit, list } from '../reply-fields.ts';

/** Passages that are reranked, if more are not wanted: Search-R1's default. */
const RERANKED = 10;

/** Search-R1's server that reranks. */
export const searchR1RerankClient: DialectClient = {
  name: 'search-r1-rerank',
  path: '/retrieve',
  batch: true,
  request: (queries, k) => ({ queries, topk_retrieval: Math.max(k, RERANKED), topk_rerank: k, return_scores: true }),
  lists: (reply) => list(reply, 'result').map((hits) => list(hits).map(documentHit)),
};

/** The same with texts in place of documents. */
export const searchR1RerankTextClient: DialectClient = { ...searchR1RerankClient, name: 'search-r1-rerank-text' };

/** StepSearch's server that reranks. */
export const stepSearchRerankClient: DialectClient = {
  ...searchR1RerankClient,
  name: 'stepsearch-rerank',
  path: '/retrieve/rerank',
  request: (queries, k) => ({ queries, topk: k, topk_retrieval: Math.max(k, RERANKED) }),
};
