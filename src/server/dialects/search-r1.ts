import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { Queries, Recorded, ResultLists, ReturnScores, Topk } from './parts/common-fields.ts';
import { HistoryQueries, Questions, Template, Truncate, withContext } from './parts/questions.ts';
import { resultOf } from './parts/reply-fields.ts';
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
  projects: [
    { name: 'Search-R1, AutoRefine', setting: '`retriever.url=http://HOST:8000/retrieve`, `retriever.topk=3`' },
    { name: 'Agentic-R', setting: 'as Search-R1, and `retriever.agentic_retriever_input=True`' },
    { name: 'verl', setting: '[`retrieval_service_url`](#verl) of the tool', checkedAgainst: 'verl 0.7.1' },
    { name: 'slime', setting: '[`search_url` in `SEARCH_R1_CONFIGS`](#slime)' },
    {
      name: 'RLinf',
      setting:
        '`tools.search.server_addr=HOST:8000`; serve with [`--dialect asearcher`](dialects.md#asearcher) if the corpus has no URLs',
      checkedAgainst: 'rlinf 0.3.0',
    },
    {
      name: 'ASearcher',
      setting: 'none: it reads an address file. Write it with `trawl serve … --address-dir $RAG_SERVER_ADDR_DIR`',
    },
    { name: 'verl-tool', setting: '`RETRIEVER_URL=http://HOST:8000/retrieve` of its tool server' },
    { name: 'RAG-R1, ParallelSearch, Tree-GRPO, AReaL, skyrl-agent' },
  ],
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
  client: {
    batch: true,
    ids: true,
    texts: 'apart',
    request: (queries, k) => ({ queries, topk: k, return_scores: true }),
    lists: resultOf,
  },
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
