import { Type } from 'typebox';
import { isObject } from '../../base/objects.ts';
import { defineDialect } from './dialect.ts';
import { CONTEXT_FIELDS, contextPlan, nullable, Query, ResultLists, refuse } from './parts/common-fields.ts';
import { field, hasField } from './parts/read-request.ts';
import { resultOf } from './parts/reply-fields.ts';

/**
 * SkyRL (skyrl-gym): one query, answered with an outer list of length 1, on Search-R1's path. A body with a string `query` is
 * SkyRL's even if it also has `queries`, which SkyRL's server ignores.
 *
 * `question` (or `questions` with one entry) and `history_queries` with one entry are additions of Trawl.
 */
export const skyrl = defineDialect({
  name: 'skyrl',
  path: '/retrieve',
  summary: 'A single query (SkyRL)',
  recognisedBy: 'a string `query`',
  projects: [
    {
      name: 'SkyRL (skyrl-gym)',
      setting: '[`environment.skyrl_gym.search.search_url`](#skyrl)',
      checkedAgainst: 'skyrl 0.3.0, skyrl-gym 0.4.0',
    },
  ],
  request: Type.Object({
    query: Query,
    question: nullable(Type.String(), 'The question that the query helps to answer.'),
    ...CONTEXT_FIELDS,
  }),
  reply: ResultLists,
  example: { query: 'who designed the Brooklyn Bridge', topk: 3, return_scores: true },
  claims(body) {
    const isText = isObject(body) && typeof field(body, 'query') === 'string';
    return isText || (hasField(body, 'query') && !hasField(body, 'queries'));
  },
  client: {
    batch: false,
    hit: ['id', 'title', 'text'],
    request: ([query], k) => ({ query, topk: k, return_scores: true }),
    lists: resultOf,
  },
  plan({ query, question, ...context }, limits) {
    if (question === null) return contextPlan([query], context, limits);
    if (context.questions !== null) refuse(['question'], 'Expected question or questions, not both');
    return contextPlan([query], { ...context, questions: [question] }, limits);
  },
});
