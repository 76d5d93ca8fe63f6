import { usageError } from '../src/base/errors.ts';
import type { EncoderInput } from '../src/encoder/text-encoder.ts';
import type { Question } from './read-questions.ts';

/**
 * What is embedded for an evaluation question: the question, an agent's sub-query, or both as `question [SEP] query`, with the history
 * if the template has it. `auto` uses both if there is a sub-query, else the question.
 */
export const QUERY_FORMS = ['auto', 'question', 'query', 'question-and-query'] as const;
export type QueryForm = (typeof QUERY_FORMS)[number];

/** The forms of one query, and of several queries whose lists are fused. */
export const EVAL_QUERY_FORMS = [...QUERY_FORMS, 'queries', 'question-and-queries'] as const;
export type EvalQueryForm = (typeof EVAL_QUERY_FORMS)[number];

/** @throws TrawlError USAGE for a question without the query that the form needs. */
export function queryOf({ id, question, query, history }: Question, form: QueryForm): EncoderInput {
  if (form === 'question' || (form === 'auto' && query === undefined)) return question;
  if (query === undefined) {
    throw usageError(`Question ${id} has no "query", which --query-form ${form} needs on every line.`);
  }
  return form === 'query' ? query : { question, query, history };
}

/** What is searched for a question: one query, or several whose lists are fused. @throws TrawlError USAGE. */
export function queriesOf(question: Question, form: EvalQueryForm): readonly EncoderInput[] {
  const { id, queries } = question;
  const isPlural = form === 'queries' || form === 'question-and-queries';
  if (queries === undefined) {
    if (!isPlural) return [queryOf(question, form)];
    throw usageError(`Question ${id} has no "queries", which --query-form ${form} needs on every line.`);
  }
  if (form === 'queries') return queries;
  if (form === 'auto' || form === 'question-and-queries')
    return queries.map((query) => ({ question: question.question, query }));
  return [queryOf(question, form)];
}
