import { type TSchema, Type } from 'typebox';

/** Fields and replies that several dialects share. Clients may omit a field with a default. */

export function nullable<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { default: null, description });
}

export const Queries = Type.Array(Type.String(), { description: 'The queries. An empty text is a query too.' });
export const Query = Type.String({ description: 'The query. It may be empty.' });

export const Topk = nullable(
  Type.Integer({ minimum: 0 }),
  "Passages per query. Absent, null or 0: the server's default.",
);

export const ReturnScores = Type.Boolean({ default: false, description: 'Whether hits have scores.' });

/** An addition of Trawl that every dialect with a body reads, whether its schema has it or not. Nothing in it fails a request. */
export const Recorded = Type.Optional(
  Type.Unknown({
    description:
      'Where the queries come from, for --record: an object with trajectory, turn, question_id, dataset, policy, step, split, tags and question, each one value or a list with one value per query (docs/recording.md).',
  }),
);

export const Score = Type.Number({ description: 'Similarity; larger is better for every metric. A float32.' });

export const Contents = Type.String({ description: 'Title in double quotes, newline, text.' });

/** A row of the corpus, with `contents` added if it is missing. */
export const Document = Type.Object(
  {
    id: Type.Optional(Type.Unknown({ description: 'As in the corpus: a string or an integer.' })),
    contents: Type.Optional(Contents),
  },
  { additionalProperties: true, description: 'The row of the corpus with all columns.' },
);

export const ScoredDocument = Type.Object({ document: Document, score: Score });

export const Truncated = Type.Optional(
  Type.Array(Type.Integer({ minimum: 0 }), {
    description: "Positions of queries that were truncated to the model's token limit. Absent if there are none.",
  }),
);

const Unreranked = Type.Optional(
  Type.Array(Type.Integer({ minimum: 0 }), {
    description:
      'Positions of queries on which the reranker failed, if the server allows that: their hits are those of the search, in its order. Absent if there are none.',
  }),
);

export const ResultLists = Type.Object({
  result: Type.Array(Type.Array(Type.Union([ScoredDocument, Document])), {
    description: 'One list per query, best first. Without return_scores the entries are documents.',
  }),
  truncated: Truncated,
  unreranked: Unreranked,
});
