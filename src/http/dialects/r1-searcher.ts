import { Type } from 'typebox';
import { documentFields } from '../../passages/document-fields.ts';
import type { Hit } from '../../retrieval/retriever.ts';
import { Queries } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { hitsOf, searchPlan, separated } from './search-plan.ts';

/**
 * R1-Searcher: a batch in, for each query the lines of its TSV corpus out. The client cuts the digits and the white space
 * that a line begins with, so the id always stands there.
 */
export const r1Searcher = defineDialect({
  name: 'r1-searcher',
  path: '/queries',
  summary: 'A batch of queries, answered with TSV lines (R1-Searcher)',
  request: Type.Object({
    queries: Queries,
    k: Type.Integer({ minimum: 0, default: 3, description: 'Passages per query; 0 gets none.' }),
  }),
  reply: Type.Object({
    answers: Type.Array(Type.Array(Type.String({ description: 'id, tab, title, three spaces, text.' }))),
    queries: Type.Array(Type.String(), { description: 'The queries again.' }),
  }),
  example: { queries: ['who designed the Brooklyn Bridge'], k: 3 },
  // Its server is Flask: a body that is no JSON is a 400 there.
  statuses: { INVALID_JSON: 400 },
  plan({ queries, k }, limits) {
    return searchPlan({ queries, k, kField: 'k', limits }, function* ({ outcomes }) {
      yield '{"answers":[';
      for (const [position, outcome] of outcomes.entries()) {
        yield position === 0 ? '[' : ',[';
        yield* separated(hitsOf(outcome, position), (hit) => JSON.stringify(tsvLine(hit)));
        yield ']';
      }
      yield '],"queries":[';
      yield* separated(queries, (query) => JSON.stringify(query));
      yield ']}';
    });
  },
});

/**
 * The line of an R1-Searcher corpus. A row read from such a file is that line, character for character; any other
 * becomes one: its title, three spaces and its text, newlines as spaces; the row number where it has no id.
 */
export function tsvLine({ row, document }: Hit): string {
  const { id, title, text, contents } = documentFields(document);
  const words = title === undefined ? contents : `${title}   ${text}`;
  return `${id ?? row}\t${words.replaceAll(/\r\n|[\r\n]/g, ' ')}`;
}
