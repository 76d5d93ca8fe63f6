import type { FastifyInstance } from 'fastify';
import { docsPage } from '../api-docs/docs-page.ts';
import { openApiDocument } from '../api-docs/openapi.ts';
import { DIALECTS } from '../dialects/dispatch.ts';
import { ADMIN_OPERATIONS } from './admin.ts';
import { HEALTH_OPERATIONS } from './health.ts';
import { METRICS_OPERATIONS } from './metrics.ts';
import { MODELS_OPERATIONS } from './models.ts';
import { NATIVE_OPERATIONS } from './native.ts';
import { CONTENT_SECURITY_POLICY } from './page.ts';
import { SAMPLE_OPERATIONS } from './sample.ts';

/** `/docs` and `/docs/openapi.json`: the description of the API as a page and as OpenAPI. */
export function registerDocs(app: FastifyInstance): void {
  const document = openApiDocument(DIALECTS, [
    ...HEALTH_OPERATIONS,
    ...METRICS_OPERATIONS,
    ...NATIVE_OPERATIONS,
    ...SAMPLE_OPERATIONS,
    ...MODELS_OPERATIONS,
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
