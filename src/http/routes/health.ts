import type { FastifyInstance } from 'fastify';
import { packageVersion } from '../../package-root.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';

/** `/livez`: the process answers. `/readyz`: it has an index, and which. */
export function registerHealth(app: FastifyInstance, holder: RetrieverHolder, config: ServerConfig): void {
  app.get('/livez', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { status: 'alive' };
  });

  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    const { state, retriever } = holder;
    if (state !== 'ready' || retriever === undefined) {
      reply.code(503).header('retry-after', config.retryAfterS);
      return { status: state, progress: holder.progress };
    }
    const { info } = retriever;
    return {
      status: 'ready',
      index: info.index,
      rows: info.rows,
      dimension: info.dimension,
      metric: info.metric,
      generation: info.generation,
      model: info.model.name,
      model_sha256: info.model.sha256,
      max_query_tokens: info.model.maxTokens.query,
      default_topk: config.topk,
      max_topk: config.maxK,
      version: packageVersion,
    };
  });
}
