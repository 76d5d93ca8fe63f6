import { asSearchReply } from '../../../src/trawl-server/search-reply.ts';
import type { DialectClient } from '../dialect-client.ts';
import { idText } from '../reply-fields.ts';

/** Trawl's own API, /v1/search. A query that fails does not fail the others. */
export const nativeClient: DialectClient = {
  name: 'native',
  path: '/v1/search',
  batch: true,
  request: (queries, k) => ({ queries, k }),
  lists(reply) {
    const known = asSearchReply(reply);
    if (known === undefined) throw new Error('its reply is not that of /v1/search');
    return known.results.map((result) => {
      if (!result.ok) return { failed: result.error.code };
      return result.hits.map(({ id, title, text, score }) => ({ id: idText(id), title, contents: text, score }));
    });
  },
};
