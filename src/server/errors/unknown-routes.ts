import type { FastifyInstance, HTTPMethods } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { DIALECT_PATHS } from '../dialects/dispatch.ts';
import { ELASTICSEARCH_ERRORS, noHandler, seemsElasticsearch } from '../elasticsearch/elasticsearch-error.ts';
import { pathPrefix } from '../indexes/index-choice.ts';
import { RELOAD_ROUTE } from '../routes/admin.ts';
import { MODEL_ROUTE } from '../routes/models.ts';
import { PASSAGE_ROUTE } from '../routes/passage.ts';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Routes with a parameter: `hasRoute` finds them by their pattern, not by a path. */
const PARAMETRIC = [PASSAGE_ROUTE, MODEL_ROUTE, RELOAD_ROUTE, ...DIALECT_PATHS].flatMap((route) =>
  route.includes(':') ? [{ route, pattern: new RegExp(`^${route.replace(/:\w+/, '[^/]+')}$`) }] : [],
);

/**
 * Answers requests to unknown routes, before the body is read: 307 to the path without trailing slashes (as FastAPI does), 405 with
 * `Allow` for a known path with another method (204 for OPTIONS), and 404 for an unknown path.
 */
export function installUnknownRoutes(app: FastifyInstance, hasElasticsearch: boolean): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    const { path, search } = splitUrl(request.url);
    // Redirects only to known routes, so that the location cannot lead to another host.
    const bare = withoutTrailingSlashes(path);
    if (bare !== path && allowedMethods(app, bare).length > 0)
      return reply.redirect(`${pathPrefix(request.raw)}${bare}${search}`, 307);
    const methods = allowedMethods(app, path);
    if (hasElasticsearch && seemsElasticsearch(request)) {
      request.dialect = ELASTICSEARCH_ERRORS;
      if (methods.length === 0) throw noHandler(request);
    }
    if (methods.length === 0) {
      throw new TrawlError('NOT_FOUND', 'Route not found. To search, use POST /retrieve; GET /docs lists all routes.');
    }
    reply.header('allow', [...methods, 'OPTIONS'].join(', '));
    if (request.method === 'OPTIONS') return reply.code(204).send();
    throw new TrawlError('METHOD_NOT_ALLOWED', `This route accepts ${methods.join(' and ')}, not ${request.method}.`);
  });
  // Never called, but without it Fastify does not run the hook above for unknown routes.
  app.setNotFoundHandler(() => {
    throw new TrawlError('NOT_FOUND', 'Route not found.');
  });
}

function allowedMethods(app: FastifyInstance, path: string): readonly string[] {
  if (path === '') return [];
  const route = PARAMETRIC.find(({ pattern }) => pattern.test(path))?.route ?? path;
  return METHODS.filter((method) => app.hasRoute({ method, url: route }));
}

/** A loop, because /\/+$/ takes time in the square of the path's length. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}

function splitUrl(url: string): { path: string; search: string } {
  const at = url.indexOf('?');
  return at === -1 ? { path: url, search: '' } : { path: url.slice(0, at), search: url.slice(at) };
}
