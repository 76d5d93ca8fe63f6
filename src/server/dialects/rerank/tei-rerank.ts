import { Type } from 'typebox';
import type { TrawlError } from '../../../base/errors.ts';
import { defineDialect } from '../dialect.ts';
import { nullable, Query } from '../parts/common-fields.ts';
import { hasField } from '../parts/read-request.ts';
import { pieces, separated } from '../parts/search-plan.ts';
import { rerankPlan, sigmoid } from './rerank-plan.ts';

/** `error_type` by status. */
const ERROR_TYPES: Readonly<Record<number, string>> = { 413: 'Validation', 422: 'Validation', 429: 'Overloaded' };

/** How TEI writes errors. */
export const TEI_ERRORS = {
  statuses: { NOT_SUPPORTED: 424, OVERLOADED: 429 },
  errorBody: teiError,
  errorReply: Type.Object({ error: Type.String(), error_type: Type.String() }),
} as const;

/**
 * Reranking as in text-embeddings-inference (TEI). Scores are the sigmoid of the model's output, whatever activation its config
 * names; of equal scores, the later text comes first.
 */
export const teiRerank = defineDialect({
  name: 'tei-rerank',
  path: '/rerank',
  summary: 'Reranking of texts (text-embeddings-inference)',
  recognisedBy: '`texts`',
  projects: [
    {
      name: 'text-embeddings-inference (TEI)',
      setting: 'the base URL `http://HOST:8000` of a server with [`--rerank`](rerank.md)',
    },
  ],
  request: Type.Object({
    query: Query,
    texts: Type.Array(Type.String(), { minItems: 1, description: 'The texts to rank.' }),
    raw_scores: Type.Boolean({
      default: false,
      description: "Whether scores are the model's output without the sigmoid.",
    }),
    return_text: Type.Boolean({ default: false, description: 'Whether the reply has the texts.' }),
    truncate: nullable(Type.Boolean(), "Ignored: texts over the model's token limit are always truncated."),
    truncation_direction: nullable(Type.String(), 'Ignored: the end is removed.'),
  }),
  reply: Type.Array(Type.Object({ index: Type.Integer(), score: Type.Number(), text: Type.Optional(Type.String()) }), {
    description: 'All texts, best first.',
  }),
  example: {
    query: 'who designed the Brooklyn Bridge',
    texts: ['John A. Roebling designed it.', 'Helsinki is a city.'],
  },
  claims: (body) => hasField(body, 'texts'),
  ...TEI_ERRORS,
  plan({ query, texts, raw_scores, return_text }) {
    return rerankPlan([{ query, passages: texts }], true, ({ ranked }) => {
      const passages = [...ranked[0]!].sort((a, b) => b.score - a.score || b.index - a.index);
      const results = separated(passages, ({ index, score }) => {
        const text = return_text ? texts[index] : undefined;
        return JSON.stringify({ index, score: raw_scores ? score : sigmoid(score), text });
      });
      return pieces`[${results}]`;
    });
  },
});

function teiError(error: TrawlError, status: number): string {
  const message = status === 500 ? 'The server failed. Its log has the details.' : error.message;
  return JSON.stringify({ error: message, error_type: ERROR_TYPES[status] ?? 'Backend' });
}
