import type { DialectClient } from '../dialect-client.ts';
import { list, text } from '../reply-fields.ts';

/** R1-Searcher: lines of a TSV corpus, `id`, tab, `title`, three spaces, `text`. */
export const r1SearcherClient: DialectClient = {
  name: 'r1-searcher',
  path: '/queries',
  batch: true,
  request: (queries, k) => ({ queries, k }),
  lists: (reply) =>
    list(reply, 'answers').map((lines) =>
      list(lines).map((line) => {
        const [, id, rest] = /^([^\t]*)\t(.*)$/s.exec(text(line)) ?? [];
        const contents = rest ?? text(line);
        const gap = contents.indexOf('   ');
        const [title, body] = gap === -1 ? [undefined, contents] : [contents.slice(0, gap), contents.slice(gap + 3)];
        return { id, title, contents, text: body, score: undefined };
      }),
    ),
};
