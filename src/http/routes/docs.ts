import type { FastifyInstance } from 'fastify';
import { DIALECTS } from '../dialects/dispatch.ts';
import { docsPage } from '../docs-page.ts';
import { openApiDocument } from '../openapi.ts';
import { ADMIN_OPERATIONS } from './admin.ts';
import { HEALTH_OPERATIONS } from './health.ts';
import { METRICS_OPERATIONS } from './metrics.ts';
import { NATIVE_OPERATIONS } from './native.ts';
import { CONTENT_SECURITY_POLICY } from './page.ts';

/** `/docs`: the API's description, for a person and as OpenAPI. It needs no index. */
export function registerDocs(app: FastifyInstance): void {
  const document = openApiDocument(DIALECTS, [
    ...HEALTH_OPERATIONS,
    ...METRICS_OPERATIONS,
    ...NATIVE_OPERATIONS,
    ...ADMIN_OPERATIONS,
  ]);
  const json = JSON.stringify(document);
  const page = docsPage(document);
  app.get('/docs/openapi.json', { config: { access: 'open' } }, async (_request, reply) =>
    reply.header('cache-control', 'no-cache').header('content-type', 'application/json; charset=utf-8').send(json),
  );
  app.get('/docs', { config: { access: 'open' } }, async (_request, reply) =>
    reply
      .header('cache-control', 'no-cache')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('referrer-policy', 'no-referrer')
      .header('content-type', 'text/html; charset=utf-8')
      .send(page),
  );
}
