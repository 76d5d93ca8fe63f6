import type { Question } from '../../evaluation/read-questions.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { QUERY_TEMPLATES, type QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';

/**
 * What is embedded for an evaluation question: the question, an agent's sub-query, or both as `question [SEP] query`, with the history
 * if the template has it. `auto` uses both if there is a sub-query, else the question.
 */
const QUERY_FORMS = ['auto', 'question', 'query', 'question-and-query'] as const;
export type QueryForm = (typeof QUERY_FORMS)[number];

export const QUERY_FORM_OPTION = {
  type: 'choice',
  choices: QUERY_FORMS,
  default: 'auto',
  help: 'What to embed for a line: its question, its sub-query ("query"), or both as "QUESTION [SEP] QUERY". auto: both if the line has a sub-query, else the question.',
} as const;

export const QUERY_TEMPLATE_OPTION = {
  type: 'choice',
  choices: QUERY_TEMPLATES,
  help: "Which of question, history (earlier queries) and query are searched for. Default: that of the index's encoder, else question-query.",
} as const;

/** The template of the calls; empty for the template of the index. */
export function templateOf(template: QueryTemplate | undefined): Pick<RetrieveCall, 'template'> {
  return template === undefined ? {} : { template };
}

export function queryOf({ id, question, query, history }: Question, form: QueryForm): EncoderInput {
  if (form === 'question' || (form === 'auto' && query === undefined)) return question;
  if (query === undefined) {
    throw new TrawlError('USAGE', `Question ${id} has no "query", which --query-form ${form} needs on every line.`);
  }
  return form === 'query' ? query : { question, query, history };
}
