import type { FastifyInstance } from 'fastify';

/** Seconds for which a browser remembers what it was allowed. */
const MAX_AGE_S = 600;
const READABLE_HEADERS = 'server-timing, x-request-id, retry-after';
const SENDABLE_HEADERS = 'authorization, content-type, x-request-id, x-request-timeout-ms';

/**
 * Lets pages of the given origins read answers (the Fetch standard's CORS protocol, without credentials: keys are sent as
 * headers, never as cookies). `*` is every origin. Without origins nothing is sent, and browsers keep answers from pages.
 */
export function installCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const everyone = origins.includes('*');
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    // Caches must not give one origin's answer to another, allowed or not.
    if (!everyone) reply.header('vary', 'origin');
    if (origin === undefined || !(everyone || origins.includes(origin))) return;
    reply.header('access-control-allow-origin', everyone ? '*' : origin);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      reply.header('access-control-expose-headers', READABLE_HEADERS);
      return;
    }
    return reply
      .header('access-control-allow-methods', 'GET, HEAD, POST')
      .header('access-control-allow-headers', SENDABLE_HEADERS)
      .header('access-control-max-age', MAX_AGE_S)
      .code(204)
      .send();
  });
}
