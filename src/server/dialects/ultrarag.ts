import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { Contents, count, nullable, Queries } from './parts/common-fields.ts';
import { list, text, textPassage } from './parts/reply-fields.ts';
import { hitLists, pieces, searchPlan, textHit } from './parts/search-plan.ts';

/** UltraRAG's deployed retriever: lists of texts. Its `collection_name` is a collection of Milvus, here an index. */
export const ultraRag = defineDialect({
  name: 'ultrarag',
  path: '/search',
  summary: 'A batch of queries as query_list (UltraRAG)',
  projects: [{ name: 'UltraRAG', setting: '`retriever_url: http://HOST:8000` of the tool `retriever_deploy_search`' }],
  // The client's limit is 300 s.
  holdMs: 290_000,
  request: Type.Object({
    query_list: Queries,
    top_k: count(5),
    query_instruction: nullable(
      Type.String(),
      'A text that is put before every query, in addition to the prefix of the encoder.',
    ),
    collection_name: nullable(
      Type.String(),
      'Name of the index. Absent or empty: the index in the URL, or the default.',
    ),
  }),
  reply: Type.Object({ ret_psg: Type.Array(Type.Array(Contents), { description: 'One list per query, best first.' }) }),
  example: { query_list: ['who designed the Brooklyn Bridge', 'capital of Finland'], top_k: 3 },
  keys: ['query_list'],
  client: {
    batch: true,
    hit: ['contents'],
    request: (queries, k) => ({ query_list: queries, top_k: k, query_instruction: '' }),
    lists: (reply) => list(reply, 'ret_psg').map((hits) => list(hits).map((hit) => textPassage(text(hit)))),
  },
  plan({ query_list, top_k, query_instruction, collection_name }, limits) {
    const queries = query_instruction ? query_list.map((query) => query_instruction + query) : query_list;
    const search = { queries, k: top_k, kField: 'top_k', limits };
    const plan = searchPlan(search, ({ outcomes }) => pieces`{"ret_psg":[${hitLists(outcomes, textHit)}]}`);
    return { ...plan, index: collection_name || null };
  },
});
