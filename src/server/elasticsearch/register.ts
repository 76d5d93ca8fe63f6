import type { FastifyInstance } from 'fastify';
import type { SearchRoutes } from '../routes/dialects.ts';
import { CLUSTER_ROUTES } from './cluster-routes.ts';
import { COUNT_ROUTES } from './count-route.ts';
import { DOCUMENT_ROUTES } from './document-routes.ts';
import { addElasticsearchRoute } from './elasticsearch-route.ts';
import { ELASTICSEARCH_ERRORS } from './error-format.ts';
import { registerInfo } from './info-route.ts';
import { jsonTypeFor } from './media-types.ts';
import { MULTI_SEARCH_ROUTES } from './multi-search-route.ts';
import { SEARCH_ROUTES } from './search-route.ts';
import { INDEX_ROUTES } from './write/index-routes.ts';
import { WRITE_ROUTES } from './write/write-routes.ts';

const ROUTES = [
  ...SEARCH_ROUTES,
  ...COUNT_ROUTES,
  ...MULTI_SEARCH_ROUTES,
  ...DOCUMENT_ROUTES,
  ...CLUSTER_ROUTES,
  ...INDEX_ROUTES,
  ...WRITE_ROUTES,
];

/** A header of every reply. Its clients refuse a server without it. */
export const PRODUCT_HEADER = { 'x-elastic-product': 'Elasticsearch' } as const;

/** Adds the routes of Elasticsearch over the indexes of the server. */
export function registerElasticsearch(app: FastifyInstance, routes: SearchRoutes): void {
  // `GET /_search` may have a body.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.addHook('onSend', async (request, reply) => {
    const type = String(reply.getHeader('content-type') ?? '');
    if (request.dialect === ELASTICSEARCH_ERRORS && type === 'application/json; charset=utf-8') {
      reply.header('content-type', jsonTypeFor(request));
    }
  });
  registerInfo(app, routes);
  for (const route of ROUTES) addElasticsearchRoute(app, routes, route);
}
