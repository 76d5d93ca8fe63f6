import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { packageVersion } from '../../package-root.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import { chosenIndex } from '../index-choice.ts';
import { OPEN_STAGES } from '../index-slot.ts';
import type { Operation } from '../openapi.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';

/** An index whose threads have died and could not be replaced. */
const FAILED = { stage: 'failed', doing: 'no request can be answered until the index is opened anew' } as const;

export const HEALTH_OPERATIONS: readonly Operation[] = [
  {
    path: '/livez',
    name: 'livez',
    summary: '200 while the process answers',
    access: 'open',
    always: true,
    reply: Type.Object({ status: Type.String() }),
  },
  {
    path: '/readyz',
    name: 'readyz',
    summary: 'The facts of the index, or 503 with the progress of the start',
    access: 'open',
    reply: Type.Object({
      status: Type.String(),
      index: Type.String({ description: 'That of the URL, else the default.' }),
      rows: Type.Integer(),
      removed_rows: Type.Integer(),
      indexes: Type.Array(
        Type.Object({
          name: Type.String(),
          stage: Type.String({ description: [...OPEN_STAGES, FAILED.stage].join(', ') }),
          doing: Type.String({ description: 'The same for a person.' }),
          done: Type.Optional(Type.Integer({ description: 'Bytes.' })),
          total: Type.Optional(Type.Integer({ description: 'Bytes.' })),
        }),
      ),
    }),
  },
  {
    path: '/health',
    name: 'health',
    summary: 'Health in one object for the clients of ReSearch, rLLM and SearchAgent-X',
    access: 'open',
    reply: Type.Object({
      status: Type.String({ description: 'healthy, else starting, stopping or failed with status 503.' }),
      retrievers: Type.Object({ total: Type.Integer(), available: Type.Integer() }),
      corpus_size: Type.Optional(Type.Integer({ description: 'Passages, once the index is open.' })),
      index_loaded: Type.Boolean(),
      retrieval_method: Type.Optional(Type.String({ description: 'Name of the encoder, once the index is open.' })),
    }),
  },
];

/** `/livez`: the process answers. `/readyz`: it has an index, and which. `/health`: what other servers' clients look at. */
export function registerHealth(app: FastifyInstance, holder: RetrieverHolder, config: ServerConfig): void {
  app.get('/livez', { config: { access: 'open' } }, async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { status: 'alive' };
  });

  app.get('/health', { config: { access: 'open' } }, async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const { state, slots } = holder;
    const retriever = chosenRetriever(request, holder);
    const ready = state === 'ready' && retriever !== undefined && retriever.failure === undefined;
    if (!ready) reply.code(503).header('retry-after', config.retryAfterS);
    const total = Math.max(1, slots.length);
    return {
      status: ready ? 'healthy' : state === 'ready' ? FAILED.stage : state,
      retrievers: { total, available: ready ? total : 0 },
      index_loaded: ready,
      ...(retriever === undefined
        ? {}
        : {
            corpus_size: retriever.info.rows - (retriever.info.removedRows ?? 0),
            retrieval_method: retriever.info.model.name,
          }),
    };
  });

  app.get('/readyz', { config: { access: 'open' } }, async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const { state, slots } = holder;
    const retriever = chosenRetriever(request, holder);
    const indexes = slots.map(({ name, progress, retriever: open }) => ({
      name,
      ...(open?.failure === undefined ? progress : FAILED),
      ...(open === undefined ? {} : { rows: open.info.rows, generation: open.info.generation }),
    }));
    if (state === 'ready' && retriever?.failure !== undefined) {
      reply.code(503).header('retry-after', config.retryAfterS);
      return { status: FAILED.stage, progress: FAILED.doing, indexes };
    }
    if (state !== 'ready' || retriever === undefined) {
      reply.code(503).header('retry-after', config.retryAfterS);
      return { status: state, progress: holder.progress, indexes };
    }
    const { info } = retriever;
    return {
      status: 'ready',
      index: info.index,
      rows: info.rows,
      removed_rows: info.removedRows ?? 0,
      dimension: info.dimension,
      metric: info.metric,
      generation: info.generation,
      model: info.model.name,
      model_sha256: info.model.sha256,
      max_query_tokens: info.model.maxTokens.query,
      default_topk: config.topk,
      max_topk: config.maxK,
      version: packageVersion,
      indexes,
    };
  });
}

/** That of the index which the request names, else the default; undefined before it is open. NOT_FOUND. */
function chosenRetriever(request: FastifyRequest, holder: RetrieverHolder): Retriever | undefined {
  const name = chosenIndex(request);
  return name === undefined ? holder.retriever : holder.slot(name).retriever;
}
