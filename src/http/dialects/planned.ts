import { Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { type Dialect, defineDialect } from './dialect.ts';

/** Known requests that the server does not support yet. It answers 501 instead of 404 or a wrong result. */
export const elasticsearch = planned({
  name: 'elasticsearch',
  path: '/:index/_search',
  summary: 'Elasticsearch queries (ArtSearch): not supported yet',
  reason: '_search is a BM25 query to Elasticsearch',
});

function planned({ reason, ...parts }: Pick<Dialect, 'name' | 'path' | 'summary'> & { reason: string }): Dialect {
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
