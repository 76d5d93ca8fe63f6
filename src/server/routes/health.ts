import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { orNull } from '../../base/or-null.ts';
import { packageVersion } from '../../base/package-root.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { OPEN_STAGES } from '../indexes/index-slot.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';
import { HookFacts, hookFacts } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';

/** The progress of an index whose threads died and could not be restarted. */
const FAILED = { stage: 'failed', doing: 'the index cannot answer until it is reloaded' } as const;

const ReadyReply = Type.Object({
  status: Type.String(),
  index: Type.String({ description: 'The index in the URL, or the default index.' }),
  rows: Type.Integer(),
  deleted_rows: Type.Integer({ description: 'Rows that searches no longer return.' }),
  dimension: Type.Integer({ description: 'Values per vector; 0 for an index without vectors.' }),
  metric: orNull(Type.String(), 'Null for an index without vectors.'),
  generation: Type.String({ description: "Hash of the index's content." }),
  model: orNull(Type.String(), 'Name of the query encoder; null for an index without vectors.'),
  model_sha256: Type.Union([Type.String(), Type.Null()]),
  max_query_tokens: orNull(Type.Integer(), 'Token limit of a query, special tokens included.'),
  modes: Type.Array(Type.String(), { description: 'How the index can be searched, the default first.' }),
  bm25_fields: orNull(
    Type.Array(Type.String()),
    'Fields of the inverted indexes: contents, or title and text; null if there are none.',
  ),
  default_topk: Type.Integer({ description: 'Passages per query if the request does not set it.' }),
  max_topk: Type.Integer({ description: 'Largest number of passages per query.' }),
  version: Type.String({ description: 'Version of Trawl.' }),
  perturbation: Type.Optional(HookFacts),
  indexes: Type.Array(
    Type.Object({
      name: Type.String(),
      stage: Type.String({ description: [...OPEN_STAGES, FAILED.stage].join(', ') }),
      doing: Type.String({ description: 'The stage in words.' }),
      done: Type.Optional(Type.Integer({ description: 'Bytes read so far, in the stage reading.' })),
      total: Type.Optional(Type.Integer({ description: 'Bytes to be read, in the stage reading.' })),
      rows: Type.Optional(Type.Integer({ description: 'Once the index is open.' })),
      generation: Type.Optional(Type.String({ description: 'Once the index is open.' })),
    }),
  ),
});

const HealthReply = Type.Object({
  status: Type.String({ description: 'healthy; with HTTP status 503: starting, stopping or failed.' }),
  retrievers: Type.Object({ total: Type.Integer(), available: Type.Integer() }),
  corpus_size: Type.Optional(Type.Integer({ description: 'Passages, once the index is open.' })),
  index_loaded: Type.Boolean(),
  retrieval_method: Type.Optional(
    Type.String({ description: 'Name of the encoder, or bm25 for an index without vectors, once the index is open.' }),
  ),
  perturbation: Type.Optional(HookFacts),
});

/** The same check under the paths of several projects. */
const HEALTH_CHECKS: readonly Operation[] = [
  {
    path: '/health',
    name: 'health',
    summary: 'Health check of ReSearch, rLLM, SearchAgent-X, FoldAgent and DR Tulu',
    access: 'open',
    reply: HealthReply,
  },
  { path: '/healthz', name: 'healthz', summary: 'Health check of agent-lightning', access: 'open', reply: HealthReply },
];

export const HEALTH_OPERATIONS: readonly Operation[] = [
  {
    path: '/livez',
    name: 'livez',
    summary: '200 while the process runs',
    access: 'open',
    always: true,
    reply: Type.Object({ status: Type.String() }),
  },
  {
    path: '/readyz',
    name: 'readyz',
    summary: 'Facts about the index, or 503 with the progress of the start',
    access: 'open',
    reply: ReadyReply,
  },
  ...HEALTH_CHECKS,
  { path: '/metrics', name: 'metrics', summary: 'Metrics for Prometheus', access: 'read', reply: 'text' },
];

/**
 * `/livez` answers 200 while the process runs, `/readyz` once searches are answered. `/health` and `/healthz` are the same check in the
 * format that clients of other servers expect. `/metrics` is for Prometheus.
 */
export function registerHealth(
  app: FastifyInstance,
  holder: IndexRegistry,
  config: ServerConfig,
  metrics: ServerMetrics,
): void {
  app.get('/livez', { config: { access: 'open' } }, async () => ({ status: 'alive' }));

  const health = async (request: FastifyRequest, reply: FastifyReply): Promise<Static<typeof HealthReply>> => {
    const { state, slots } = holder;
    const found = holder.factsOf(chosenIndex(request));
    // A server that is written over HTTP may have no index yet.
    const ready = state === 'ready' && (slots.length === 0 || (found !== undefined && found.failure === undefined));
    if (!ready) reply.code(503).header('retry-after', config.retryAfterS);
    const total = Math.max(1, slots.length);
    return {
      status: ready ? 'healthy' : state === 'ready' ? FAILED.stage : state,
      retrievers: { total, available: ready ? total : 0 },
      index_loaded: ready,
      corpus_size: found && found.info.rows - found.info.deletedRows,
      retrieval_method: found && (found.info.model?.name ?? 'bm25'),
      ...hookFacts(config),
    };
  };
  for (const { path } of HEALTH_CHECKS) app.get(path, { config: { access: 'open' } }, health);

  app.get('/readyz', { config: { access: 'open' } }, async (request, reply) => {
    const { state, slots } = holder;
    const found = holder.factsOf(chosenIndex(request));
    const indexes = slots.map(({ name, progress, retriever: open }) => ({
      name,
      ...(open?.failure === undefined ? progress : FAILED),
      rows: open?.info.rows,
      generation: open?.info.generation,
    }));
    if (state === 'ready' && slots.length === 0) return { status: 'ready', indexes };
    if (state !== 'ready' || found === undefined || found.failure !== undefined) {
      reply.code(503).header('retry-after', config.retryAfterS);
      const isFailed = state === 'ready' && found?.failure !== undefined;
      const [status, progress] = isFailed ? [FAILED.stage, FAILED.doing] : [state, holder.progress];
      return { status, progress, indexes };
    }
    const { info } = found;
    const facts: Static<typeof ReadyReply> = {
      status: 'ready',
      index: info.index,
      rows: info.rows,
      deleted_rows: info.deletedRows,
      dimension: info.dimension,
      metric: info.metric,
      generation: info.generation,
      model: info.model?.name ?? null,
      model_sha256: info.model?.sha256 ?? null,
      max_query_tokens: info.model?.maxTokens.query ?? null,
      modes: [...info.modes],
      bm25_fields: info.bm25 && [...info.bm25.fields],
      default_topk: config.topk,
      max_topk: config.maxK,
      version: packageVersion,
      ...hookFacts(config),
      indexes,
    };
    return facts;
  });

  app.get('/metrics', async (_request, reply) =>
    reply.header('content-type', metrics.contentType).send(await metrics.text()),
  );
}
