import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { countRequest, refuseIfNotReady, type SearchRoutes } from '../routes/dialects.ts';
import { searchPage } from '../routes/page.ts';
import { ELASTICSEARCH_ERRORS } from './error-format.ts';
import { jsonTypeFor } from './media-types.ts';

/** The version whose behaviour the routes have. Clients of versions 8 and 9 accept it. */
const VERSION = '8.17.1';

/** `GET /` and `HEAD /`: what clients ask first. Browsers get the search page. */
export function registerInfo(app: FastifyInstance, { holder, metrics }: SearchRoutes): void {
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
      return reply
        .header('content-type', jsonTypeFor(request))
        .header('cache-control', 'no-store')
        .send(JSON.stringify(infoOf(holder.slots.map(({ name }) => name))));
    },
  });
}

function wantsPage(accept = ''): boolean {
  return /(?:^|,)\s*text\/html\b/i.test(accept);
}

function infoOf(indexes: readonly string[]): object {
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
