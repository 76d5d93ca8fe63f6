import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { defineDialect } from '../dialect.ts';
import { nullable, Query } from '../parts/common-fields.ts';
import { pieces, separated } from '../parts/search-plan.ts';
import { firstOf, rerankPlan, sigmoid } from './rerank-plan.ts';

/** Infinity: requests like Cohere's. In the reply, documents are texts, and scores the sigmoid of the model's output. */
export const infinityRerank = defineDialect({
  name: 'infinity-rerank',
  path: '/rerank',
  summary: 'Reranking of documents (Infinity)',
  projects: [{ name: 'Infinity' }],
  onlyIfNamed: true,
  request: Type.Object({
    model: nullable(Type.String(), "Any name: the reranker is the server's."),
    query: Query,
    documents: Type.Array(Type.String()),
    top_n: nullable(Type.Integer({ minimum: 1 }), 'Number of results. Absent or null: all.'),
    return_documents: Type.Boolean({ default: false }),
    raw_scores: Type.Boolean({
      default: false,
      description: "Whether scores are the model's output without the sigmoid.",
    }),
  }),
  reply: Type.Object({
    object: Type.String(),
    results: Type.Array(
      Type.Object({ relevance_score: Type.Number(), index: Type.Integer(), document: Type.Optional(Type.String()) }),
    ),
    model: Type.String(),
    usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
    id: Type.String(),
    created: Type.Integer({ description: 'Seconds since 1970.' }),
  }),
  example: {
    query: 'who designed the Brooklyn Bridge',
    documents: ['John A. Roebling designed it.', 'Helsinki is a city.'],
  },
  plan({ query, documents, top_n, return_documents, raw_scores }) {
    return rerankPlan([{ query, passages: documents }], true, ({ ranked, tokens, model }) => {
      const results = separated(firstOf(ranked[0]!, top_n), ({ index, score }) => {
        const document = return_documents ? documents[index] : undefined;
        return JSON.stringify({ relevance_score: raw_scores ? score : sigmoid(score), index, document });
      });
      const usage = { prompt_tokens: tokens, total_tokens: tokens };
      const rest = { model, usage, id: randomUUID(), created: Math.floor(Date.now() / 1000) };
      return pieces`{"object":"rerank","results":[${results}],${JSON.stringify(rest).slice(1)}`;
    });
  },
});
