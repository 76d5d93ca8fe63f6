import { Type } from 'typebox';
import { QUERY_TEMPLATES } from '../../../encoder/identity/model-identity.ts';
import { type EncoderInput, TRUNCATE_SIDES } from '../../../encoder/text-encoder.ts';
import { Issues } from '../../errors/request-error.ts';
import { nullable } from './common-fields.ts';

/** An addition of Trawl: the question of each query, for encoders trained on question and sub-query. */
export const Questions = nullable(
  Type.Array(Type.Union([Type.String(), Type.Null()])),
  'The question of each query. null or "": the query has none.',
);

/** An addition of Trawl: the history of each query. It is embedded if the template has it. */
export const HistoryQueries = nullable(
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

/** Joins queries with their questions and histories. A query without both stays a plain text. */
export function withContext(
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
  const hasHistory = history !== null && history !== undefined && history.length > 0;
  if (!hasHistory && (question === null || question === undefined || question === '')) return query;
  return { question: question ?? '', query, ...(hasHistory ? { history } : {}) };
}

function checkLength(field: string, name: string, list: readonly unknown[] | null, queries: number): void {
  if (list === null || list.length === queries) return;
  refuse([field], `Expected one ${name} (or null) per query, got ${list.length} ${field} for ${queries} queries`);
}

export function refuse(place: readonly (string | number)[], message: string): never {
  const issues = new Issues();
  issues.add('value_error', place, message, undefined);
  issues.throwIfAny();
  throw new Error('unreachable');
}
