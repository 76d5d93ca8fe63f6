import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { defineDialect, type ServerPassage } from './dialect.ts';
import { count, Queries } from './parts/common-fields.ts';
import { list, text as readText } from './parts/reply-fields.ts';
import { hitLists, pieces, searchPlan, separated } from './parts/search-plan.ts';

/**
 * R1-Searcher: a batch of queries, each answered with lines of a TSV corpus. Every line starts with an id, because the client
 * removes leading digits and white space from it.
 */
export const r1Searcher = defineDialect({
  name: 'r1-searcher',
  path: '/queries',
  summary: 'A batch of queries, answered with TSV lines (R1-Searcher)',
  projects: [
    { name: 'R1-Searcher', setting: 'none: it always uses port 5003. Serve with `--port 5003` or `--listen 5003`' },
  ],
  // The client has no time limit.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({ queries: Queries, k: count(3) }),
  reply: Type.Object({
    answers: Type.Array(Type.Array(Type.String({ description: 'id, tab, title, three spaces, text.' }))),
    queries: Type.Array(Type.String(), { description: 'The queries of the request.' }),
  }),
  example: { queries: ['who designed the Brooklyn Bridge'], k: 3 },
  // The original server, written with Flask, answers 400.
  statuses: { INVALID_JSON: 400 },
  client: {
    batch: true,
    hit: ['id', 'title', 'text'],
    request: (queries, k) => ({ queries, k }),
    lists: (reply) => list(reply, 'answers').map((lines) => list(lines).map(readLine)),
  },
  plan({ queries, k }, limits) {
    return searchPlan({ queries, k, kField: 'k', limits }, ({ outcomes }) => {
      const answers = hitLists(outcomes, (hit) => JSON.stringify(tsvLine(hit)));
      return pieces`{"answers":[${answers}],"queries":[${separated(queries, (query) => JSON.stringify(query))}]}`;
    });
  },
});

/**
 * The line of an R1-Searcher corpus: id (or row number), tab, title, three spaces, text, with newlines replaced by spaces. A row
 * that was read from such a file gives exactly its line.
 */
function tsvLine({ row, document }: Hit): string {
  const { id, title, text, contents } = documentFields(document);
  const words = title === undefined ? contents : `${title}   ${text}`;
  return `${id ?? row}\t${words.replaceAll(/\r\n|[\r\n]/g, ' ')}`;
}

function readLine(line: unknown): ServerPassage {
  const [, id, rest] = /^([^\t]*)\t(.*)$/s.exec(readText(line)) ?? [];
  const contents = rest ?? readText(line);
  const gap = contents.indexOf('   ');
  const [title, text] = gap === -1 ? [undefined, contents] : [contents.slice(0, gap), contents.slice(gap + 3)];
  return { id, title, contents, text, score: undefined };
}
