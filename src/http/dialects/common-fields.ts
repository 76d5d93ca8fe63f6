import { type TSchema, Type } from 'typebox';

/** Fields and replies that several dialects share. A field with a default need not be sent. */

export function nullable<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { default: null, description });
}

export const Queries = Type.Array(Type.String(), { description: 'The queries; any text is one, the empty one too.' });
export const Query = Type.String({ description: 'The query; any text is one.' });

export const Topk = nullable(
  Type.Integer({ minimum: 0 }),
  "Passages per query. Absent, null and 0 mean the server's default.",
);

export const ReturnScores = Type.Boolean({ default: false, description: 'Whether hits carry scores.' });

export const Score = Type.Number({ description: 'Larger is nearer, whatever the metric; rounded once to float32.' });

export const Contents = Type.String({ description: 'The title in double quotes, a newline and the text.' });

/** A row of the corpus; `contents` is added where it is missing. */
export const Document = Type.Object(
  {
    id: Type.Optional(Type.Unknown({ description: 'As the corpus has it: a string or an integer.' })),
    contents: Type.Optional(Contents),
  },
  { additionalProperties: true, description: 'The row of the corpus, all columns.' },
);

export const ScoredDocument = Type.Object({ document: Document, score: Score });

export const Truncated = Type.Optional(
  Type.Array(Type.Integer({ minimum: 0 }), {
    description: 'Positions of queries that had more tokens than the model takes; only where there are some.',
  }),
);

export const ResultLists = Type.Object({
  result: Type.Array(Type.Array(Type.Union([ScoredDocument, Document])), {
    description: 'One list per query, best first; bare documents without return_scores.',
  }),
  truncated: Truncated,
});
