import { Type } from 'typebox';
import type { EncoderInput } from '../../embedding/text-encoder.ts';
import { nullable, Query, ResultLists, ReturnScores, Topk } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { Questions, refuse, withQuestions } from './questions.ts';
import { field, isJsonObject } from './read-request.ts';
import { bareHit, resultLists, scoredHit } from './result-lists.ts';
import { searchPlan } from './search-plan.ts';

/**
 * SkyRL (skyrl-gym): one query in, an outer list of length 1 out, on Search-R1's path. A string `query` makes a body
 * SkyRL's even beside `queries`, which SkyRL's server ignores and rLLM's older one ranks second.
 *
 * `question` (or `questions` with one entry) is our own addition, as `questions` is for batches.
 */
export const skyrl = defineDialect({
  name: 'skyrl',
  path: '/retrieve',
  summary: 'A single query (SkyRL)',
  request: Type.Object({
    query: Query,
    topk: Topk,
    return_scores: ReturnScores,
    question: nullable(Type.String(), 'The question that the query serves.'),
    questions: Questions,
  }),
  reply: ResultLists,
  example: { query: 'who designed the Brooklyn Bridge', topk: 3, return_scores: true },
  claims(body) {
    if (!isJsonObject(body)) return false;
    const query = field(body, 'query');
    return typeof query === 'string' || (query !== undefined && field(body, 'queries') === undefined);
  },
  plan({ query, topk, return_scores, question, questions }, limits) {
    const search = {
      queries: withQuestion(query, question, questions),
      k: topk || limits.topk,
      kField: 'topk',
      limits,
    };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, return_scores ? scoredHit : bareHit));
  },
});

function withQuestion(
  query: string,
  question: string | null,
  questions: readonly (string | null)[] | null,
): readonly EncoderInput[] {
  if (question === null) return withQuestions([query], questions);
  if (questions !== null) refuse(['question'], 'A query takes question or questions, not both');
  return withQuestions([query], [question]);
}
