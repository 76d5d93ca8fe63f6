import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, rowPassage } from '../reply-fields.ts';

/** Elasticsearch: a `multi_match` over all fields. The URL has the index: `http://127.0.0.1:9200/wiki`. */
export const elasticsearchClient: DialectClient = {
  name: 'elasticsearch',
  path: '/_search',
  batch: false,
  request: ([query], k) => ({ query: { multi_match: { query } }, size: k }),
  lists: (reply) => [
    list(member(reply, 'hits'), 'hits').map((hit) => ({
      ...rowPassage(member(hit, '_source') ?? {}, member(hit, '_score')),
      id: idText(member(hit, '_id')),
    })),
  ],
};
