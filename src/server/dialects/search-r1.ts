import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { Queries, Recorded, ResultLists, ReturnScores, Topk } from './parts/common-fields.ts';
import { HistoryQueries, Questions, Template, Truncate, withContext } from './parts/questions.ts';
import { bareHit, resultLists, scoredHit } from './parts/result-lists.ts';
import { searchPlan } from './parts/search-plan.ts';
import { searchR1Rerank } from './rerank/search-r1-rerank.ts';
import { skyrl } from './skyrl.ts';

/**
 * Search-R1 and the projects that copied its server: a batch of queries, answered with one list of passages per query. Trawl does
 * not have two bugs of the original: `return_scores: false` fails or drops queries, and a `topk` larger than the corpus repeats the
 * last passage.
 */
export const searchR1 = defineDialect({
  name: 'search-r1',
  path: '/retrieve',
  summary: 'A batch of queries (Search-R1, verl, slime, Agentic-R, RAG-R1 and others)',
  // Search-R1's client has no time limit, and ends the training at the first error.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    queries: Queries,
    topk: Topk,
    return_scores: ReturnScores,
    questions: Questions,
    history_queries: HistoryQueries,
    template: Template,
    truncate: Truncate,
    record: Recorded,
  }),
  reply: ResultLists,
  example: { queries: ['who designed the Brooklyn Bridge', 'capital of Finland'], topk: 3, return_scores: true },
  claims: (body, named) => !named || !(skyrl.claims(body, false) || searchR1Rerank.claims(body, false)),
  plan({ queries, topk, return_scores, questions, history_queries, template, truncate }, limits) {
    const search = {
      queries: withContext(queries, questions, history_queries),
      k: topk || limits.topk,
      kField: 'topk',
      limits,
      template,
      truncate: truncate ?? limits.truncate,
    };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, return_scores ? scoredHit : bareHit));
  },
});
