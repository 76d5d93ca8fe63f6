import { Type } from 'typebox';
import { NO_TIMINGS } from '../../search/timings.ts';
import { defineDialect, type Plan } from './dialect.ts';
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

/** What SearchAgent-X asks while searches run, to learn which of them the server has stopped early. Trawl's are never stopped. */
export const searchAgentXStall = defineDialect({
  name: 'searchagent-x-check-stall',
  method: 'GET',
  path: '/check_stall',
  summary: 'The searches that were stopped early: none (SearchAgent-X)',
  section: 'searchagent-x',
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({ step_low_ema: Type.Number({ default: 0.9, description: 'Ignored: no search is stopped.' }) }),
  // Spelt as in the original.
  reply: Type.Object({ stopeed_requests: Type.Array(Type.Integer(), { description: 'Empty.' }) }),
  example: { step_low_ema: 0.9 },
  plan: () => fixedPlan('{"stopeed_requests":[]}'),
});

/** Between two experiments SearchAgent-X lets the server forget waiting searches. A search belongs to its request here. */
export const searchAgentXReset = defineDialect({
  name: 'searchagent-x-reset',
  method: 'GET',
  path: '/reset',
  summary: 'Nothing to reset: searches have no state (SearchAgent-X)',
  section: 'searchagent-x',
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({}),
  reply: Type.Object({}),
  example: {},
  plan: () => fixedPlan('{}'),
});

function fixedPlan(reply: string): Plan {
  return { queries: 0, k: 0, run: async () => ({ timings: NO_TIMINGS, pieces: [reply] }) };
}
