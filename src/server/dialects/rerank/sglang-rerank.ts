import { Type } from 'typebox';
import { defineDialect } from '../dialect.ts';
import { nullable, Query } from '../parts/common-fields.ts';
import { pieces, separated } from '../parts/search-plan.ts';
import { firstOf, rerankPlan } from './rerank-plan.ts';

/** SGLang: requests like Cohere's, answered with a bare list. */
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
  plan({ query, documents, top_n, return_documents }) {
    return rerankPlan([{ query, passages: documents }], false, ({ ranked }) => {
      const results = separated(firstOf(ranked[0]!, top_n), ({ index, score }) => {
        const document = return_documents ? documents[index] : undefined;
        return JSON.stringify({ score, document, index, meta_info: {} });
      });
      return pieces`[${results}]`;
    });
  },
});
