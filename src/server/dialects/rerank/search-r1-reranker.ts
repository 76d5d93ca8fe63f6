import { type Static, Type } from 'typebox';
import { defineDialect } from '../dialect.ts';
import { nullableCount, Queries, ReturnScores, refuse, TextLists } from '../parts/common-fields.ts';
import { hasField } from '../parts/read-request.ts';
import { pieces, separated } from '../parts/search-plan.ts';
import { rerankPlan } from './rerank-plan.ts';

const Contents = Type.Optional(Type.String({ description: 'Title, newline, text.' }));

/** A document, or a hit with its document: both forms of the entries in Search-R1's replies. */
const Passage = Type.Object(
  { contents: Contents, document: Type.Optional(Type.Object({ contents: Contents }, { additionalProperties: true })) },
  { additionalProperties: true },
);

/**
 * Search-R1's reranker (`rerank_server.py`). Each query is scored with its own documents: the original scores it with the
 * documents of all queries, and drops queries without documents.
 */
export const searchR1Reranker = defineDialect({
  name: 'search-r1-reranker',
  path: '/rerank',
  summary: 'Reranking of the documents of several queries (Search-R1)',
  recognisedBy: '`queries`',
  projects: [{ name: "Search-R1's reranker" }],
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    queries: Queries,
    documents: Type.Array(Type.Array(Passage), { description: 'One list per query.' }),
    rerank_topk: nullableCount("Documents per query. Absent, null or 0: the server's --topk, 3 by default."),
    return_scores: ReturnScores,
  }),
  reply: TextLists,
  example: {
    queries: ['who designed the Brooklyn Bridge'],
    documents: [
      [{ contents: '"Brooklyn Bridge"\nIt was designed by John A. Roebling.' }, { contents: 'Helsinki\nA city.' }],
    ],
    return_scores: true,
  },
  claims: (body) => hasField(body, 'queries'),
  plan({ queries, documents, rerank_topk, return_scores }, { topk }) {
    if (documents.length !== queries.length) {
      refuse(['documents'], `Expected one list per query, got ${documents.length} lists for ${queries.length} queries`);
    }
    const lists = queries.map((query, i) => ({
      query,
      passages: documents[i]!.map((passage, j) => titledText(passage, i, j)),
    }));
    return rerankPlan(lists, false, ({ ranked }) => {
      const results = separated(ranked, (passages, i) => {
        const texts = passages.slice(0, rerank_topk || topk).map(({ index, score }) => {
          const text = lists[i]!.passages[index]!;
          return return_scores ? { document: text, score } : text;
        });
        return JSON.stringify(texts);
      });
      return pieces`{"result":[${results}]}`;
    });
  },
});

/** The text as the original scores and returns it: `(Title: …) …`, with the first line as title. */
function titledText({ contents, document }: Static<typeof Passage>, query: number, place: number): string {
  const whole = contents ?? document?.contents;
  if (whole === undefined) refuse(['documents', query, place], 'Expected contents, or document with contents');
  const [title, ...text] = whole.split('\n');
  return `(Title: ${title}) ${text.join('\n')}`;
}
