import type { FastifyInstance } from 'fastify';
import type { Operation } from '../openapi.ts';
import type { ServerMetrics } from '../server-metrics.ts';

export const METRICS_OPERATIONS: readonly Operation[] = [
  {
    path: '/metrics',
    name: 'metrics',
    summary: 'What the server counts, for Prometheus',
    access: 'read',
    reply: 'text',
  },
];

export function registerMetrics(app: FastifyInstance, metrics: ServerMetrics): void {
  app.get('/metrics', async (_request, reply) =>
    reply
      .header('content-type', metrics.contentType)
      .header('cache-control', 'no-store')
      .send(await metrics.text()),
  );
}
