import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { defineDialect } from './dialect.ts';

/** Elasticsearch's search on a server without its interface: a 501 that says how to get it, in place of a 404. */
export const elasticsearch = defineDialect({
  name: 'elasticsearch',
  path: '/:index/_search',
  summary:
    'Elasticsearch queries (ArtSearch): only on servers started with --dialect elasticsearch; with --writable also _bulk (docs/elasticsearch.md)',
  request: Type.Object({}),
  reply: Type.Object({}),
  example: {},
  statuses: { NOT_SUPPORTED: 501 },
  check() {
    throw new TrawlError(
      'NOT_SUPPORTED',
      "This address does not serve Elasticsearch's interface. Start the server with --dialect elasticsearch, or with " +
        '--listen 9200=elasticsearch for an address of its own.',
    );
  },
  plan() {
    throw new Error('unreachable');
  },
});
