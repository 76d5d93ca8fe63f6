import type { DialectClient, ServerPassage } from '../dialect-client.ts';
import { list, rowPassage, scoreOf } from '../reply-fields.ts';

/** ReSearch, ReCall and FlashRAG's remote retriever: a batch. */
export const researchBatchClient: DialectClient = {
  name: 'research-batch',
  path: '/batch_search',
  batch: true,
  request: (queries, k) => ({ query: queries, top_n: k, return_score: true }),
  lists(reply) {
    const [documents, scores] = list(reply);
    return list(documents).map((hits, i) => withScores(hits, list(scores)[i]));
  },
};

/** The same for one query. */
export const researchClient: DialectClient = {
  name: 'research',
  path: '/search',
  batch: false,
  request: ([query], k) => ({ query, top_n: k, return_score: true }),
  lists(reply) {
    const [documents, scores] = list(reply);
    return [withScores(documents, scores)];
  },
};

function withScores(hits: unknown, scores: unknown): ServerPassage[] {
  const all = list(scores);
  return list(hits).map((hit, rank) => ({ ...rowPassage(hit), score: scoreOf(all[rank]) }));
}
