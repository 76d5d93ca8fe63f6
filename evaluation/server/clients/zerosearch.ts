import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, scoreOf, text, textOrNone, textPassage } from '../reply-fields.ts';

/** ZeroSearch: a bare list of `{"id", "title", "text", "score"}`, in which `text` has the title, too. */
export const zeroSearchClient: DialectClient = {
  name: 'zerosearch',
  path: '/retrieve',
  batch: false,
  request: ([query], k) => ({ query, top_k: k }),
  lists: (reply) => [
    list(reply).map((hit) => {
      const passage = textPassage(text(member(hit, 'text')));
      return {
        ...passage,
        id: idText(member(hit, 'id')),
        title: textOrNone(member(hit, 'title')) ?? passage.title,
        score: scoreOf(member(hit, 'score')),
      };
    }),
  ],
};
