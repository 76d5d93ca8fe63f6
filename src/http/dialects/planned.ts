import { Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { type Dialect, defineDialect } from './dialect.ts';
import { field, isJsonObject } from './read-request.ts';

/** Requests that are known and cannot be answered yet: told so rather than misread or a 404. */
export const searchR1Rerank = planned({
  name: 'search-r1-rerank',
  path: '/retrieve',
  summary: 'Retrieval with reranking (Search-R1): not there yet',
  what: 'topk_retrieval and topk_rerank ask for reranking',
  claims: (body) =>
    isJsonObject(body) &&
    field(body, 'queries') !== undefined &&
    ['topk_retrieval', 'topk_rerank'].some((name) => field(body, name) !== undefined),
});

export const stepSearchRerank = planned({
  name: 'stepsearch-rerank',
  path: '/retrieve/rerank',
  summary: 'Retrieval with reranking (StepSearch): not there yet',
  what: '/retrieve/rerank is reranking',
});

export const rerank = planned({
  name: 'rerank',
  path: '/rerank',
  summary: 'Reranking of given documents (Search-R1): not there yet',
  what: '/rerank is reranking',
});

export const elasticsearch = planned({
  name: 'elasticsearch',
  path: '/:index/_search',
  summary: 'Elasticsearch queries (ArtSearch): not there yet',
  what: '_search is a BM25 query to Elasticsearch',
});

function planned({
  what,
  ...parts
}: Pick<Dialect, 'name' | 'path' | 'summary'> & Partial<Pick<Dialect, 'claims'>> & { what: string }): Dialect {
  return defineDialect({
    ...parts,
    request: Type.Object({}),
    reply: Type.Object({}),
    example: {},
    statuses: { NOT_SUPPORTED: 501 },
    check() {
      throw new TrawlError('NOT_SUPPORTED', `${what}, which this server cannot do yet. POST /retrieve searches.`);
    },
    plan() {
      throw new Error('unreachable');
    },
  });
}
