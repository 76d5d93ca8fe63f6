import { randomUUID } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { isObject } from '../../../base/objects.ts';
import { defineDialect } from '../dialect.ts';
import { nullable, Query, refuse } from '../parts/common-fields.ts';
import { field } from '../parts/read-request.ts';
import { pieces, separated } from '../parts/search-plan.ts';
import { firstOf, rerankPlan } from './rerank-plan.ts';

const Documents = Type.Union(
  [Type.String(), Type.Array(Type.Unknown({ description: 'A text, or an object with a text.' }))],
  { description: 'The documents to rank.' },
);

/** The fields that requests of several rerank services share. Each service ignores the fields of the others, and so does Trawl. */
const Request = Type.Object({
  model: nullable(Type.String(), "Any name: the reranker is the server's."),
  query: Query,
  documents: Documents,
  top_n: nullable(Type.Integer({ minimum: 0 }), 'Number of results. Absent, null, 0 or more than there are: all.'),
  return_documents: nullable(Type.Boolean(), 'false: results have no document.'),
  rank_fields: nullable(Type.Array(Type.String()), 'The fields of objects to rank by, in this order. Absent: text.'),
  use_activation: nullable(Type.Boolean(), "false: scores are the model's output before its activation (vLLM)."),
});

type Request = Static<typeof Request>;

const Reply = Type.Object({
  id: Type.String(),
  model: Type.String({ description: 'Name of the reranker.' }),
  results: Type.Array(
    Type.Object({
      index: Type.Integer({ description: 'Position of the document in the request.' }),
      relevance_score: Type.Number({ description: "The score after the model's activation. A float32." }),
      document: Type.Optional(Type.Object({ text: Type.String() }, { additionalProperties: true })),
    }),
    { description: 'Best first.' },
  ),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
  meta: Type.Object({ api_version: Type.Object({ version: Type.String() }) }),
});

const parts = {
  summary: 'Reranking of documents (Cohere, Jina, vLLM)',
  request: Request,
  reply: Reply,
  example: {
    model: 'any',
    query: 'who designed the Brooklyn Bridge',
    documents: ['John A. Roebling designed it.', 'Helsinki is a city.'],
    top_n: 1,
  },
} as const;

/**
 * Reranking as in Cohere's API (v1 and v2), Jina's API and vLLM: their requests look alike, so the reply has the fields of all of
 * them. The last dialect of its path, it claims every body.
 */
export const rerank = defineDialect({
  ...parts,
  name: 'rerank',
  path: '/rerank',
  projects: [
    {
      name: "Cohere's SDK, Jina, vLLM, DR Tulu's reranker",
      setting: 'the base URL `http://HOST:8000` of a server with [`--rerank`](rerank.md)',
      checkedAgainst: 'cohere 7.3.1',
    },
  ],
  plan: (request) => plan(request, '2'),
});
export const rerankV1 = defineDialect({
  ...parts,
  name: 'rerank-v1',
  path: '/v1/rerank',
  section: 'rerank',
  plan: (request) => plan(request, '1'),
});
export const rerankV2 = defineDialect({
  ...parts,
  name: 'rerank-v2',
  path: '/v2/rerank',
  section: 'rerank',
  plan: (request) => plan(request, '2'),
});

function plan(request: Request, version: string) {
  const { query, return_documents, top_n, rank_fields } = request;
  const documents = typeof request.documents === 'string' ? [request.documents] : request.documents;
  const passages = documents.map((document, i) => rankedText(document, rank_fields, i));
  return rerankPlan([{ query, passages }], request.use_activation === false, ({ ranked, tokens, model }) => {
    const results = separated(firstOf(ranked[0]!, top_n), ({ index, score }) => {
      const given = documents[index];
      const document = { text: passages[index], ...(isObject(given) ? given : {}) };
      return JSON.stringify({
        index,
        relevance_score: score,
        document: return_documents === false ? undefined : document,
      });
    });
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    const rest = { usage, meta: { api_version: { version } } };
    const head = JSON.stringify({ id: randomUUID(), model }).slice(0, -1);
    return pieces`${head},"results":[${results}],${JSON.stringify(rest).slice(1)}`;
  });
}

/** The text that the reranker reads: several fields, one per line. */
function rankedText(document: unknown, rankFields: readonly string[] | null, place: number): string {
  if (typeof document === 'string') return document;
  if (!isObject(document)) refuse(['documents', place], 'Expected a string or an object');
  const fields = rankFields === null || rankFields.length === 0 ? ['text'] : rankFields;
  const values = fields.map((name) => field(document, name));
  const missing = fields.find((_, i) => typeof values[i] !== 'string');
  if (missing !== undefined) {
    const reason = 'Expected a string, because the document is ranked by this field';
    refuse(['documents', place, missing.slice(0, 100)], reason);
  }
  return values.join('\n');
}
