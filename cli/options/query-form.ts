import { EVAL_QUERY_FORMS, QUERY_FORMS } from '../../evaluation/query-form.ts';
import { QUERY_TEMPLATES } from '../../src/encoder/identity/model-identity.ts';
import * as option from './option.ts';

export const QUERY_FORM_OPTION = option.choice(
  { choices: QUERY_FORMS, default: 'auto' },
  'What to embed for a line: its question, its sub-query ("query"), or both as "QUESTION [SEP] QUERY". auto: both if the line has a sub-query, else the question.',
);

export const QUERY_TEMPLATE_OPTION = option.choice(
  QUERY_TEMPLATES,
  "Which of question, history (earlier queries) and query are searched for. Default: the form of the index's encoder, else question-query.",
);

export const EVAL_QUERY_FORM_OPTION = option.choice(
  { choices: EVAL_QUERY_FORMS, default: 'auto' },
  'What to search for: the question of a line, its sub-query ("query"), or both as "QUESTION [SEP] QUERY"; or each of its "queries", alone or with the question, whose lists are fused. auto: sub-query or queries with the question if the line has them, else the question.',
);
