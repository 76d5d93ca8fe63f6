import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, rowPassage } from '../reply-fields.ts';

/** Trawl's own API, /v1/search. A query that fails does not fail the others. */
export const nativeClient: DialectClient = {
  name: 'native',
  path: '/v1/search',
  batch: true,
  // The `text` of a hit has its title, too, or not: only the row says which.
  request: (queries, k) => ({ queries, k, documents: true }),
  lists: (reply) =>
    list(reply, 'results').map((result) => {
      if (member(result, 'ok') !== true) return { failed: String(member(member(result, 'error'), 'code')) };
      return list(result, 'hits').map((hit) => ({
        ...rowPassage(member(hit, 'document'), member(hit, 'score')),
        id: idText(member(hit, 'id')),
      }));
    }),
};
