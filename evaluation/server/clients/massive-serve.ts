import type { DialectClient, ServerPassage } from '../dialect-client.ts';
import { list, member, rowPassage, textPassage } from '../reply-fields.ts';

/** massive-serve: scores and texts in lists of their own. Its `IDs` are places in its files, not ids of passages. */
export const massiveServeClient: DialectClient = {
  name: 'massive-serve',
  path: '/search',
  batch: true,
  request: (queries, k) => ({ query: queries, n_docs: k }),
  lists: (reply) => listsOf(reply, rowPassage),
};

/**
 * DS Serve: the same; a passage is `{"passage_id", "text", "source"}`, in which the id is a row. Trawl puts a title in quotes before the
 * text. A first line without quotes belongs to the text, since DS Serve's passages have no titles.
 */
export const dsServeClient: DialectClient = {
  ...massiveServeClient,
  name: 'ds-serve',
  lists: (reply) =>
    listsOf(reply, (hit, score) => {
      const passage = rowPassage(hit, score);
      return /^"[^\n]*"\n/.test(passage.contents) ? textPassage(passage.contents, score) : passage;
    }),
};

function listsOf(reply: unknown, read: (hit: unknown, score: unknown) => ServerPassage): ServerPassage[][] {
  const results = member(reply, 'results');
  const scores = list(results, 'scores');
  return list(results, 'passages').map((hits, i) =>
    list(hits).map((hit, rank) => ({ ...read(hit, list(scores[i])[rank]), id: undefined })),
  );
}
