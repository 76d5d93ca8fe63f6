import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { CONTEXT_FIELDS, contextPlan, Queries, ResultLists } from './parts/common-fields.ts';
import { resultOf } from './parts/reply-fields.ts';
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
  request: Type.Object({ queries: Queries, ...CONTEXT_FIELDS }),
  reply: ResultLists,
  example: { queries: ['who designed the Brooklyn Bridge', 'capital of Finland'], topk: 3, return_scores: true },
  // If preferred, it is asked first, and leaves SkyRL's bodies and requests for reranking to their dialects. Else it is asked last.
  claims: (body, named) => !named || !(skyrl.claims(body, false) || searchR1Rerank.claims(body, false)),
  client: {
    batch: true,
    hit: ['id', 'title', 'text'],
    request: (queries, k) => ({ queries, topk: k, return_scores: true }),
    lists: resultOf,
  },
  plan: ({ queries, ...context }, limits) => contextPlan(queries, context, limits),
});
