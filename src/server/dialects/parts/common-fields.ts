import { type Static, type TSchema, Type } from 'typebox';
import { QUERY_TEMPLATES } from '../../../encoder/identity/model-identity.ts';
import { type EncoderInput, TRUNCATE_SIDES } from '../../../encoder/text-encoder.ts';
import { RequestError } from '../../errors/request-error.ts';
import type { RequestLimits } from '../../server-config.ts';
import type { Plan } from '../dialect.ts';
import { bareHit, resultLists, scoredHit, searchPlan } from './search-plan.ts';

/** Fields and replies that several dialects share. Clients may omit a field with a default. */

export function nullable<Schema extends TSchema>(schema: Schema, description: string, usual: unknown = null) {
  return Type.Union([schema, Type.Null()], { default: usual, description });
}

/** A number of hits, which may be 0. @param usual the number if a client omits the field. */
export function count(usual: number, hits = 'Passages per query') {
  return Type.Integer({ minimum: 0, default: usual, description: `${hits}; 0 returns none.` });
}

/** A number of hits that may be null, or 0 as another word for null. */
export function nullableCount(description: string, usual: number | null = null) {
  return nullable(Type.Integer({ minimum: 0 }), description, usual);
}

export const Queries = Type.Array(Type.String(), { description: 'The queries. An empty text is a query too.' });
export const Query = Type.String({ description: 'The query. It may be empty.' });

export const Topk = nullableCount("Passages per query. Absent, null or 0: the server's default.");

export const ReturnScores = Type.Boolean({ default: false, description: 'Whether hits have scores.' });

/** An addition of Trawl that every dialect with a body reads, whether its schema has it or not. Nothing in it fails a request. */
const Recorded = Type.Optional(
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

const positions = (queries: string) =>
  Type.Optional(
    Type.Array(Type.Integer({ minimum: 0 }), {
      description: `Positions of queries ${queries}. Absent if there are none.`,
    }),
  );

export const Truncated = positions("that were truncated to the model's token limit");

const Unreranked = positions(
  'on which the reranker failed, if the server allows that: they keep the hits and the order of the search',
);

export const TextLists = Type.Object({
  result: Type.Array(Type.Array(Type.Union([Type.String(), Type.Object({ document: Type.String(), score: Score })])), {
    description: 'One list per query, best first. Without return_scores the entries are texts.',
  }),
});

export const ResultLists = Type.Object({
  result: Type.Array(Type.Array(Type.Union([ScoredDocument, Document])), {
    description: 'One list per query, best first. Without return_scores the entries are documents.',
  }),
  truncated: Truncated,
  unreranked: Unreranked,
});

/** An addition of Trawl: the question of each query, for encoders trained on question and sub-query. */
const Questions = nullable(
  Type.Array(Type.Union([Type.String(), Type.Null()])),
  'The question of each query. null or "": the query has none.',
);

/** An addition of Trawl: the history of each query. It is embedded if the template has it. */
const HistoryQueries = nullable(
  Type.Array(Type.Union([Type.Array(Type.String()), Type.Null()])),
  "The history of each query: the agent's earlier queries, oldest first. null or []: the query has none.",
);

/** An addition of Trawl: which parts of the queries are searched for. */
export const Template = nullable(
  Type.Enum([...QUERY_TEMPLATES]),
  "Which of question, history and query are embedded, or searched for by bm25. Absent: the template of the index's encoder, else question-query.",
);

/** An addition of Trawl, for queries with a question or history. */
export const Truncate = nullable(
  Type.Enum([...TRUNCATE_SIDES]),
  "What to shorten if a question, history and query together exceed the model's token limit: tail (the end of the query) or question (the oldest history first, then the question). Absent: the server's default.",
);

/** The fields that requests of Search-R1 and SkyRL have beside their queries. */
export const CONTEXT_FIELDS = {
  topk: Topk,
  return_scores: ReturnScores,
  questions: Questions,
  history_queries: HistoryQueries,
  template: Template,
  truncate: Truncate,
  record: Recorded,
};
const Context = Type.Object(CONTEXT_FIELDS);

/** The plan of Search-R1 and SkyRL: one list of passages per query. */
export function contextPlan(
  queries: readonly string[],
  { topk, return_scores, questions, history_queries, template, truncate }: Static<typeof Context>,
  limits: RequestLimits,
): Plan {
  const search = {
    queries: withContext(queries, questions, history_queries),
    k: topk || limits.topk,
    kField: 'topk',
    limits,
    template,
    truncate: truncate ?? limits.truncate,
  };
  return searchPlan(search, ({ outcomes }) => resultLists(outcomes, return_scores ? scoredHit : bareHit));
}

/** Joins queries with their questions and histories. A query without both stays a plain text. */
function withContext(
  queries: readonly string[],
  questions: readonly (string | null)[] | null,
  histories: readonly (readonly string[] | null)[] | null,
): readonly EncoderInput[] {
  checkLength('questions', 'question', questions, queries.length);
  checkLength('history_queries', 'history', histories, queries.length);
  if (questions === null && histories === null) return queries;
  return queries.map((query, i) => inputWith(query, questions?.[i], histories?.[i]));
}

/** The query with its question and history; a plain text if it has neither. */
export function inputWith(
  query: string,
  question: string | null | undefined,
  history: readonly string[] | null | undefined,
): EncoderInput {
  if (!history?.length) return question ? { question, query } : query;
  return { question: question ?? '', query, history };
}

function checkLength(field: string, name: string, list: readonly unknown[] | null, queries: number): void {
  if (list === null || list.length === queries) return;
  refuse([field], `Expected one ${name} (or null) per query, got ${list.length} ${field} for ${queries} queries`);
}

/** @throws RequestError INVALID_REQUEST. */
export function refuse(place: readonly (string | number)[], msg: string): never {
  const loc = ['body', ...place];
  throw new RequestError('INVALID_REQUEST', `${loc.join('.')}: ${msg}`, [{ type: 'value_error', loc, msg }]);
}
