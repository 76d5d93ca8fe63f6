import type { FastifyInstance } from 'fastify';
import { docsPage } from '../api-docs/docs-page.ts';
import { openApiDocument } from '../api-docs/openapi.ts';
import { DIALECTS } from '../dialects/dispatch.ts';
import { ADMIN_OPERATIONS } from './admin.ts';
import { HEALTH_OPERATIONS } from './health.ts';
import { INDEX_FILE_OPERATIONS } from './index-files.ts';
import { INDEXES_OPERATION } from './indexes.ts';
import { MANIFEST_OPERATIONS } from './manifest.ts';
import { METRICS_OPERATIONS } from './metrics.ts';
import { MODELS_OPERATIONS } from './models.ts';
import { CONTENT_SECURITY_POLICY } from './page.ts';
import { PASSAGE_OPERATION } from './passage.ts';
import { SAMPLE_OPERATIONS } from './sample.ts';

interface Docs {
  readonly json: string;
  readonly page: string;
}

let docs: Docs | undefined;

/** Made for the first reader: it takes tens of milliseconds, which would delay each start of a server. It is the same for all. */
function apiDocs(): Docs {
  if (docs === undefined) {
    const document = openApiDocument(DIALECTS, [
      ...HEALTH_OPERATIONS,
      ...METRICS_OPERATIONS,
      INDEXES_OPERATION,
      PASSAGE_OPERATION,
      ...SAMPLE_OPERATIONS,
      ...MANIFEST_OPERATIONS,
      ...MODELS_OPERATIONS,
      ...ADMIN_OPERATIONS,
      ...INDEX_FILE_OPERATIONS,
    ]);
    docs = { json: JSON.stringify(document), page: docsPage(document) };
  }
  return docs;
}

/** `/docs` and `/docs/openapi.json`: the description of the API as a page and as OpenAPI. */
export function registerDocs(app: FastifyInstance): void {
  app.get('/docs/openapi.json', { config: { access: 'open' } }, async (_request, reply) =>
    reply
      .header('cache-control', 'no-cache')
      .header('content-type', 'application/json; charset=utf-8')
      .send(apiDocs().json),
  );
  app.get('/docs', { config: { access: 'open' } }, async (_request, reply) =>
    reply
      .header('cache-control', 'no-cache')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('referrer-policy', 'no-referrer')
      .header('content-type', 'text/html; charset=utf-8')
      .send(apiDocs().page),
  );
}
