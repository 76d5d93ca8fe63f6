import type { Question } from '../evaluation/read-questions.ts';
import type { EncoderInput } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';

/**
 * Which text of an evaluation question is embedded: the question, an agent's sub-query, or both as
 * `question [SEP] query`. `auto` takes both where there is a sub-query, else the question.
 */
export const QUERY_FORMS = ['auto', 'question', 'query', 'question-and-query'] as const;
export type QueryForm = (typeof QUERY_FORMS)[number];

export const QUERY_FORM_OPTION = {
  kind: 'choice',
  choices: QUERY_FORMS,
  default: 'auto',
  help: 'What is embedded of a line with a question and a sub-query: the question, the query, or both as "QUESTION [SEP] QUERY". auto: both where there is a sub-query.',
} as const;

export function queryOf({ id, question, query }: Question, form: QueryForm): EncoderInput {
  if (form === 'question' || (form === 'auto' && query === undefined)) return question;
  if (query === undefined) {
    throw new TrawlError('USAGE', `Question ${id} has no "query"; --query-form ${form} needs one on every line.`);
  }
  return form === 'query' ? query : { question, query };
}
