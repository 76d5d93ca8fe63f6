import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, scoreOf, textOrNone, withoutTitle } from '../reply-fields.ts';

/** Trawl's own API, /v1/search. A query that fails does not fail the others. */
export const nativeClient: DialectClient = {
  name: 'native',
  path: '/v1/search',
  batch: true,
  request: (queries, k) => ({ queries, k }),
  lists: (reply) =>
    list(reply, 'results').map((result) => {
      if (member(result, 'ok') !== true) return { failed: String(member(member(result, 'error'), 'code')) };
      return list(result, 'hits').map((hit) => {
        // The title stands in the first line of the text, too.
        const contents = textOrNone(member(hit, 'text')) ?? '';
        const title = textOrNone(member(hit, 'title'));
        return {
          id: idText(member(hit, 'id')),
          title,
          contents,
          text: withoutTitle(contents, title ?? ''),
          score: scoreOf(member(hit, 'score')),
        };
      });
    }),
};
