import { Type } from 'typebox';
import { type EncoderInput, TRUNCATE_SIDES } from '../../embedding/text-encoder.ts';
import { Issues } from '../errors/request-error.ts';
import { nullable } from './common-fields.ts';

/** An addition of Trawl: the question of each query, for encoders trained on question and sub-query. */
export const Questions = nullable(
  Type.Array(Type.Union([Type.String(), Type.Null()])),
  'The question of each query. null or "": the query has none.',
);

/** An addition of Trawl, for queries with a question. */
export const Truncate = nullable(
  Type.Enum([...TRUNCATE_SIDES]),
  "What to shorten if a question and its query together exceed the model's token limit. Absent: the server's default.",
);

/** Pairs queries with their questions. A query whose question is null or empty stays a plain text. */
export function withQuestions(
  queries: readonly string[],
  questions: readonly (string | null)[] | null,
): readonly EncoderInput[] {
  if (questions === null) return queries;
  if (questions.length !== queries.length) {
    const found = `${questions.length} questions for ${queries.length} queries`;
    refuse(['questions'], `Expected one question (or null) per query, got ${found}`);
  }
  return queries.map((query, i) => {
    const question = questions[i];
    return question === null || question === undefined || question === '' ? query : { question, query };
  });
}

export function refuse(place: readonly string[], message: string): never {
  const issues = new Issues();
  issues.add('value_error', place, message, undefined);
  issues.throwIfAny();
  throw new Error('unreachable');
}
