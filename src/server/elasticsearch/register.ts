import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { countRequest, refuseIfNotReady, type SearchRoutes } from '../routes/dialects.ts';
import { searchPage } from '../routes/page.ts';
import { CLUSTER_ROUTES } from './cluster-routes.ts';
import { DOCUMENT_ROUTES } from './document-routes.ts';
import { ELASTICSEARCH_ERRORS, isElasticsearch } from './elasticsearch-error.ts';
import { addElasticsearchRoute, jsonTypeFor } from './elasticsearch-route.ts';
import { SEARCH_ROUTES } from './search-routes.ts';
import { WRITE_ROUTES } from './write/write-routes.ts';

const ROUTES = [...SEARCH_ROUTES, ...DOCUMENT_ROUTES, ...CLUSTER_ROUTES, ...WRITE_ROUTES];

/** A header of every reply. Its clients refuse a server without it. */
export const PRODUCT_HEADER = { 'x-elastic-product': 'Elasticsearch' } as const;

/** The version whose behaviour the routes have. Clients of versions 8 and 9 accept it. */
const VERSION = '8.17.1';

/** Adds the routes of Elasticsearch over the indexes of the server. */
export function registerElasticsearch(app: FastifyInstance, routes: SearchRoutes): void {
  // `GET /_search` may have a body.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.addHook('onSend', async (request, reply) => {
    const type = String(reply.getHeader('content-type') ?? '');
    if (isElasticsearch(request) && type === 'application/json; charset=utf-8') {
      reply.header('content-type', jsonTypeFor(request));
    }
  });
  registerInfo(app, routes);
  for (const route of ROUTES) addElasticsearchRoute(app, routes, route);
}

/** `GET /` and `HEAD /`: what clients ask first. Browsers get the search page. */
function registerInfo(app: FastifyInstance, { holder, metrics }: SearchRoutes): void {
  const page = searchPage();
  app.route({
    method: ['GET', 'HEAD'],
    url: '/',
    exposeHeadRoute: false,
    config: {
      onlyDialect: ELASTICSEARCH_ERRORS,
      access: ({ headers }) => (wantsPage(headers.accept) ? 'open' : 'read'),
    },
    handler: async (request, reply) => {
      reply.header('vary', 'accept');
      if (wantsPage(request.headers.accept)) return page(request, reply);
      countRequest(request, reply, metrics);
      refuseIfNotReady(holder);
      const indexes = holder.slots.map(({ name }) => name);
      return reply.header('content-type', jsonTypeFor(request)).send(JSON.stringify(serverInfo(indexes)));
    },
  });
}

function wantsPage(accept = ''): boolean {
  return /(?:^|,)\s*text\/html\b/i.test(accept);
}

function serverInfo(indexes: readonly string[]): object {
  // Clients compare it to notice another cluster behind the same address.
  const uuid = createHash('sha256').update(indexes.join(',')).digest('base64url').slice(0, 22);
  return {
    name: 'trawl',
    cluster_name: 'trawl',
    cluster_uuid: uuid,
    version: {
      number: VERSION,
      build_flavor: 'default',
      build_type: 'tar',
      build_hash: 'unknown',
      build_date: '2025-01-10T10:08:26.972230187Z',
      build_snapshot: false,
      lucene_version: '9.12.0',
      minimum_wire_compatibility_version: '7.17.0',
      minimum_index_compatibility_version: '7.0.0',
    },
    tagline: 'You Know, for Search',
  };
}
