import type { Question } from '../evaluation/read-questions.ts';
import type { EncoderInput } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';

/**
 * What is embedded for an evaluation question: the question, an agent's sub-query, or both as `question [SEP] query`. `auto` uses
 * both if there is a sub-query, else the question.
 */
const QUERY_FORMS = ['auto', 'question', 'query', 'question-and-query'] as const;
export type QueryForm = (typeof QUERY_FORMS)[number];

export const QUERY_FORM_OPTION = {
  type: 'choice',
  choices: QUERY_FORMS,
  default: 'auto',
  help: 'What to embed for a line: its question, its sub-query ("query"), or both as "QUESTION [SEP] QUERY". auto: both if the line has a sub-query, else the question.',
} as const;

export function queryOf({ id, question, query }: Question, form: QueryForm): EncoderInput {
  if (form === 'question' || (form === 'auto' && query === undefined)) return question;
  if (query === undefined) {
    throw new TrawlError('USAGE', `Question ${id} has no "query", which --query-form ${form} needs on every line.`);
  }
  return form === 'query' ? query : { question, query };
}
