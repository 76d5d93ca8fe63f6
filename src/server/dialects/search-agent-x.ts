import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { Contents } from './parts/common-fields.ts';
import { list, text, textPassage } from './parts/reply-fields.ts';
import { hitLists, pieces, searchPlan, textHit } from './parts/search-plan.ts';

const Seconds = Type.Number({ description: 'Seconds.' });

/**
 * SearchAgent-X: the reply has only texts. Its parameters of the approximate search are accepted and ignored, because Trawl's
 * search is exact.
 */
export const searchAgentX = defineDialect({
  name: 'searchagent-x',
  path: '/embed_and_retrieve',
  summary: 'A batch of queries, answered with texts and timings (SearchAgent-X)',
  projects: [{ name: 'SearchAgent-X', setting: 'none: it always uses port 8500. Serve with `--listen 8500`' }],
  // The client fails at any status but 200.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({
    prompts: Type.Array(Type.String(), { description: 'The queries.' }),
    top_k: Type.Integer({ minimum: 0, description: 'Passages per query; 0 returns none.' }),
    anns_search_range: Type.Integer({ default: -1, description: 'Ignored: the search is exact.' }),
    request_id: Type.Integer({ default: -1, description: 'Ignored.' }),
  }),
  reply: Type.Object({
    neighbor_texts: Type.Array(Type.Array(Contents)),
    active_threads: Type.Integer(),
    queued_tasks: Type.Integer(),
    is_stop_by_stall: Type.Boolean(),
    t_embed: Seconds,
    t_ann: Seconds,
    t_thread: Seconds,
  }),
  example: { prompts: ['who designed the Brooklyn Bridge'], top_k: 3 },
  client: {
    batch: true,
    hit: ['contents'],
    request: (prompts, k) => ({ prompts, top_k: k }),
    lists: (reply) => list(reply, 'neighbor_texts').map((hits) => list(hits).map((hit) => textPassage(text(hit)))),
  },
  plan({ prompts, top_k }, limits) {
    return searchPlan({ queries: prompts, k: top_k, kField: 'top_k', limits }, ({ outcomes, timings }) => {
      const [t_embed, t_ann] = [timings.embed / 1000, (timings.search + timings.fetch) / 1000];
      const state = { active_threads: 0, queued_tasks: 0, is_stop_by_stall: false };
      const rest = JSON.stringify({ ...state, t_embed, t_ann, t_thread: t_embed + t_ann }).slice(1);
      return pieces`{"neighbor_texts":[${hitLists(outcomes, textHit)}],${rest}`;
    });
  },
});
