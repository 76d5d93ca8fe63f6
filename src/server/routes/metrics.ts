import type { FastifyInstance } from 'fastify';
import type { Operation } from '../api-docs/operations.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';

export const METRICS_OPERATIONS: readonly Operation[] = [
  {
    path: '/metrics',
    name: 'metrics',
    summary: 'Metrics for Prometheus',
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
