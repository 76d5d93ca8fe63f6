import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { defineDialect } from './dialect.ts';
import { idText, list, member, rowPassage } from './parts/reply-fields.ts';

/** Elasticsearch's search on a server without its interface: a 501 that says how to get it, in place of a 404. */
export const elasticsearch = defineDialect({
  name: 'elasticsearch',
  path: '/:index/_search',
  summary:
    'Elasticsearch queries (ArtSearch): only on servers started with --dialect elasticsearch; with --writable also _bulk (docs/elasticsearch.md)',
  projects: [
    {
      name: 'ArtSearch, Agentic-RAG-R1',
      setting: '`ELASTIC_SEARCH_URL=http://HOST:9200`; serve with [`--listen 9200=elasticsearch`](elasticsearch.md)',
      checkedAgainst: 'elasticsearch-py 8.17.2, 9.1.1',
    },
    { name: 'clients of Elasticsearch 8 and 9' },
  ],
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
  client: {
    // The URL of the server has the index: http://127.0.0.1:9200/wiki.
    path: '/_search',
    batch: false,
    hit: ['id', 'title', 'text'],
    request: ([query], k) => ({ query: { multi_match: { query } }, size: k }),
    lists: (reply) => [
      list(member(reply, 'hits'), 'hits').map((hit) => ({
        ...rowPassage(member(hit, '_source') ?? {}, member(hit, '_score')),
        id: idText(member(hit, '_id')),
      })),
    ],
  },
  plan() {
    throw new Error('unreachable');
  },
});
