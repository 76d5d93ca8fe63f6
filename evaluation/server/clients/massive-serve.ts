import type { DialectClient, ServerPassage } from '../dialect-client.ts';
import { list, member, rowPassage } from '../reply-fields.ts';

/** massive-serve: scores and texts in lists of their own. Its `IDs` are places in its files, not ids of passages. */
export const massiveServeClient: DialectClient = {
  name: 'massive-serve',
  path: '/search',
  batch: true,
  request: (queries, k) => ({ query: queries, n_docs: k }),
  lists(reply) {
    const results = member(reply, 'results');
    const scores = list(results, 'scores');
    return list(results, 'passages').map((hits, i) =>
      list(hits).map((hit, rank): ServerPassage => ({ ...rowPassage(hit, list(scores[i])[rank]), id: undefined })),
    );
  },
};

/** DS Serve: the same; a passage is `{"passage_id", "text", "source"}`, in which the id is a row. */
export const dsServeClient: DialectClient = { ...massiveServeClient, name: 'ds-serve' };
