import type { FastifyInstance, HTTPMethods } from 'fastify';
import { TrawlError } from '../errors.ts';
import { DIALECT_PATHS } from './dialects/dispatch.ts';
import { indexPrefix } from './index-choice.ts';
import { RELOAD_ROUTE } from './routes/admin.ts';
import { PASSAGE_ROUTE } from './routes/native.ts';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Routes with a parameter, which `hasRoute` knows by their pattern alone. */
const PARAMETRIC = [PASSAGE_ROUTE, RELOAD_ROUTE, ...DIALECT_PATHS].flatMap((route) =>
  route.includes(':') ? [{ route, pattern: new RegExp(`^${route.replace(/:\w+/, '[^/]+')}$`) }] : [],
);

/**
 * What no route answers: a trailing slash too many (307 to the path without, as FastAPI does), a known path with another
 * method (405 with `Allow`; OPTIONS is told the same with 204), an unknown path (404). It runs before the body is read.
 */
export function installUnknownRoutes(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    const { path, search } = splitUrl(request.url);
    // Only our own paths are ever redirected to, so the location cannot lead to another host.
    const bare = path.replace(/\/+$/, '');
    if (bare !== path && allowedMethods(app, bare).length > 0)
      return reply.redirect(`${indexPrefix(request.raw)}${bare}${search}`, 307);
    const methods = allowedMethods(app, path);
    if (methods.length === 0) {
      throw new TrawlError('NOT_FOUND', 'There is no such route. GET / is the search page; POST /retrieve searches.');
    }
    reply.header('allow', [...methods, 'OPTIONS'].join(', '));
    if (request.method === 'OPTIONS') return reply.code(204).send();
    throw new TrawlError('METHOD_NOT_ALLOWED', `This route takes ${methods.join(' and ')}.`);
  });
  // Reached by nothing, but its presence makes the hook above run for unknown routes.
  app.setNotFoundHandler(() => {
    throw new TrawlError('NOT_FOUND', 'There is no such route.');
  });
}

function allowedMethods(app: FastifyInstance, path: string): readonly string[] {
  if (path === '') return [];
  const route = PARAMETRIC.find(({ pattern }) => pattern.test(path))?.route ?? path;
  return METHODS.filter((method) => app.hasRoute({ method, url: route }));
}

function splitUrl(url: string): { path: string; search: string } {
  const cut = url.indexOf('?');
  return cut === -1 ? { path: url, search: '' } : { path: url.slice(0, cut), search: url.slice(cut) };
}
