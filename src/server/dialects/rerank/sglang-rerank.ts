import { Type } from 'typebox';
import { defineDialect } from '../dialect.ts';
import { nullable, Query } from '../parts/common-fields.ts';
import { separated } from '../parts/search-plan.ts';
import { firstOf } from './rerank-documents.ts';
import { rerankPlan } from './rerank-plan.ts';

/** SGLang: requests as of Cohere, answered with a bare list. */
export const sglangRerank = defineDialect({
  name: 'sglang-rerank',
  path: '/v1/rerank',
  summary: 'Reranking of documents (SGLang)',
  projects: [{ name: 'SGLang' }],
  onlyIfNamed: true,
  request: Type.Object({
    query: Query,
    documents: Type.Array(Type.String()),
    top_n: nullable(Type.Integer({ minimum: 1 }), 'Number of results. Absent or null: all.'),
    return_documents: Type.Boolean({ default: true }),
    instruct: nullable(Type.String(), 'Ignored: a cross-encoder takes no instruction.'),
  }),
  reply: Type.Array(
    Type.Object({
      score: Type.Number(),
      document: Type.Optional(Type.String()),
      index: Type.Integer(),
      meta_info: Type.Object({}),
    }),
    { description: 'Best first.' },
  ),
  example: {
    query: 'who designed the Brooklyn Bridge',
    documents: ['John A. Roebling designed it.', 'Helsinki is a city.'],
  },
  client: null,
  plan({ query, documents, top_n, return_documents }) {
    return rerankPlan({ lists: [{ query, passages: documents }] }, function* ({ ranked }) {
      yield '[';
      yield* separated(firstOf(ranked[0]!, top_n), ({ index, score }) =>
        JSON.stringify({ score, ...(return_documents ? { document: documents[index] } : {}), index, meta_info: {} }),
      );
      yield ']';
    });
  },
});
