import type { Question } from '../../evaluation/read-questions.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { QUERY_FORM_OPTION, queryOf } from '../options/query-form.ts';

/** The forms of other commands, and those of several queries. */
const EVAL_QUERY_FORMS = [...QUERY_FORM_OPTION.choices, 'queries', 'question-and-queries'] as const;
export type EvalQueryForm = (typeof EVAL_QUERY_FORMS)[number];

export const EVAL_QUERY_FORM_OPTION = {
  type: 'choice',
  choices: EVAL_QUERY_FORMS,
  default: 'auto',
  help: 'What to search for: the question of a line, its sub-query ("query"), or both as "QUESTION [SEP] QUERY"; or each of its "queries", alone or with the question, whose lists are fused. auto: sub-query or queries with the question if the line has them, else the question.',
} as const;

/** What is searched for a question: one query, or several whose lists are fused. @throws TrawlError USAGE. */
export function queriesOf(question: Question, form: EvalQueryForm): readonly EncoderInput[] {
  const { id, queries } = question;
  const isPlural = form === 'queries' || form === 'question-and-queries';
  if (queries === undefined) {
    if (!isPlural) return [queryOf(question, form)];
    throw new TrawlError('USAGE', `Question ${id} has no "queries", which --query-form ${form} needs on every line.`);
  }
  if (form === 'queries') return queries;
  if (form === 'auto' || form === 'question-and-queries')
    return queries.map((query) => ({ question: question.question, query }));
  return [queryOf(question, form)];
}
