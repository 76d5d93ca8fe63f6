import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import { defineDialect } from './dialect.ts';
import { Contents, nullable, Queries } from './parts/common-fields.ts';
import { claimsKeysOf } from './parts/search-keys.ts';
import { hitsOf, searchPlan, separated } from './parts/search-plan.ts';

/** UltraRAG's deployed retriever: lists of texts. Its `collection_name` is a collection of Milvus, here an index. */
export const ultraRag = defineDialect({
  name: 'ultrarag',
  path: '/search',
  summary: 'A batch of queries as query_list (UltraRAG)',
  // The client's limit is 300 s.
  holdMs: 290_000,
  request: Type.Object({
    query_list: Queries,
    top_k: Type.Integer({ minimum: 0, default: 5, description: 'Passages per query; 0 returns none.' }),
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
  claims: claimsKeysOf('ultrarag'),
  plan({ query_list, top_k, query_instruction, collection_name }, limits) {
    const instruction = query_instruction ?? '';
    const queries = instruction === '' ? query_list : query_list.map((query) => instruction + query);
    const plan = searchPlan({ queries, k: top_k, kField: 'top_k', limits }, function* ({ outcomes }) {
      yield '{"ret_psg":[';
      for (const [position, outcome] of outcomes.entries()) {
        yield position === 0 ? '[' : ',[';
        yield* separated(hitsOf(outcome, position), (hit) => JSON.stringify(documentFields(hit.document).contents));
        yield ']';
      }
      yield ']}';
    });
    return { ...plan, index: collection_name === '' ? null : collection_name };
  },
});
