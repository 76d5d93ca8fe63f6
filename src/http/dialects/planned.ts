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
  summary: 'Elasticsearch queries (ArtSearch): only on servers started with --dialect elasticsearch',
  problem:
    "This address does not serve Elasticsearch's interface. Start the server with --dialect elasticsearch, or with " +
    '--listen 9200=elasticsearch for an address of its own.',
});

function planned({
  reason,
  problem = `${reason}, which this server does not support yet. To search, use POST /retrieve.`,
  ...parts
}: Pick<Dialect, 'name' | 'path' | 'summary'> &
  Partial<Pick<Dialect, 'claims'>> & { readonly reason?: string; readonly problem?: string }): Dialect {
  return defineDialect({
    ...parts,
    request: Type.Object({}),
    reply: Type.Object({}),
    example: {},
    statuses: { NOT_SUPPORTED: 501 },
    check() {
      throw new TrawlError('NOT_SUPPORTED', problem);
    },
    plan() {
      throw new Error('unreachable');
    },
  });
}
