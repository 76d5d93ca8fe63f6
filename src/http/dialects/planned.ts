import { Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { type Dialect, defineDialect } from './dialect.ts';
import { field, isJsonObject } from './read-request.ts';

/** Known requests that the server does not support yet. It answers 501 instead of 404 or a wrong result. */
export const searchR1Rerank = planned({
  name: 'search-r1-rerank',
  path: '/retrieve',
  summary: 'Retrieval with reranking (Search-R1): not supported yet',
  reason: 'topk_retrieval and topk_rerank request reranking',
  claims: (body) =>
    isJsonObject(body) &&
    field(body, 'queries') !== undefined &&
    ['topk_retrieval', 'topk_rerank'].some((name) => field(body, name) !== undefined),
});

export const stepSearchRerank = planned({
  name: 'stepsearch-rerank',
  path: '/retrieve/rerank',
  summary: 'Retrieval with reranking (StepSearch): not supported yet',
  reason: '/retrieve/rerank is reranking',
});

export const rerank = planned({
  name: 'rerank',
  path: '/rerank',
  summary: 'Reranking of given documents (Search-R1): not supported yet',
  reason: '/rerank is reranking',
});

export const elasticsearch = planned({
  name: 'elasticsearch',
  path: '/:index/_search',
  summary: 'Elasticsearch queries (ArtSearch): not supported yet',
  reason: '_search is a BM25 query to Elasticsearch',
});

function planned({
  reason,
  ...parts
}: Pick<Dialect, 'name' | 'path' | 'summary'> & Partial<Pick<Dialect, 'claims'>> & { reason: string }): Dialect {
  return defineDialect({
    ...parts,
    request: Type.Object({}),
    reply: Type.Object({}),
    example: {},
    statuses: { NOT_SUPPORTED: 501 },
    check() {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `${reason}, which this server does not support yet. To search, use POST /retrieve.`,
      );
    },
    plan() {
      throw new Error('unreachable');
    },
  });
}
