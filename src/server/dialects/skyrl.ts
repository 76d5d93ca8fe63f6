import { Type } from 'typebox';
import type { EncoderInput } from '../../encoder/text-encoder.ts';
import { defineDialect } from './dialect.ts';
import { nullable, Query, Recorded, ResultLists, ReturnScores, Topk } from './parts/common-fields.ts';
import { HistoryQueries, Questions, refuse, Template, Truncate, withContext } from './parts/questions.ts';
import { field, isJsonObject } from './parts/read-request.ts';
import { resultOf } from './parts/reply-fields.ts';
import { bareHit, resultLists, scoredHit } from './parts/result-lists.ts';
import { searchPlan } from './parts/search-plan.ts';

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
    topk: Topk,
    return_scores: ReturnScores,
    question: nullable(Type.String(), 'The question that the query helps to answer.'),
    questions: Questions,
    history_queries: HistoryQueries,
    template: Template,
    truncate: Truncate,
    record: Recorded,
  }),
  reply: ResultLists,
  example: { query: 'who designed the Brooklyn Bridge', topk: 3, return_scores: true },
  claims(body) {
    if (!isJsonObject(body)) return false;
    const query = field(body, 'query');
    return typeof query === 'string' || (query !== undefined && field(body, 'queries') === undefined);
  },
  client: {
    batch: false,
    ids: true,
    texts: 'apart',
    request: ([query], k) => ({ query, topk: k, return_scores: true }),
    lists: resultOf,
  },
  plan({ query, topk, return_scores, question, questions, history_queries, template, truncate }, limits) {
    const search = {
      queries: withQuestion(query, question, questions, history_queries),
      k: topk || limits.topk,
      kField: 'topk',
      limits,
      template,
      truncate: truncate ?? limits.truncate,
    };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, return_scores ? scoredHit : bareHit));
  },
});

function withQuestion(
  query: string,
  question: string | null,
  questions: readonly (string | null)[] | null,
  histories: readonly (readonly string[] | null)[] | null,
): readonly EncoderInput[] {
  if (question === null) return withContext([query], questions, histories);
  if (questions !== null) refuse(['question'], 'Expected question or questions, not both');
  return withContext([query], [question], histories);
}
