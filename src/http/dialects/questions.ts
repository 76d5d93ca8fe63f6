import { Type } from 'typebox';
import type { EncoderInput } from '../../embedding/text-encoder.ts';
import { Issues } from '../request-error.ts';
import { nullable } from './common-fields.ts';

/** Our own addition to the batch: the question that each query serves, for retrievers trained on both. */
export const Questions = nullable(
  Type.Array(Type.Union([Type.String(), Type.Null()])),
  'The question that each query serves; null or "" leaves its query to stand alone.',
);

/** A question that is null or empty leaves its query to stand alone. */
export function withQuestions(
  queries: readonly string[],
  questions: readonly (string | null)[] | null,
): readonly EncoderInput[] {
  if (questions === null) return queries;
  if (questions.length !== queries.length) {
    const found = `there are ${questions.length} questions and ${queries.length} queries`;
    refuse(['questions'], `Each query needs its question, or null: ${found}`);
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
