import type { FastifyInstance } from 'fastify';
import { ORIGIN_HEADERS } from '../recording/read-origins.ts';

/** How long a browser may cache the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600;
const EXPOSED_HEADERS =
  'server-timing, x-request-id, x-trawl-view, x-trawl-exact, x-trawl-perturbed, x-trawl-record-ignored, retry-after';
const ALLOWED_HEADERS = [
  ...['authorization', 'content-type', 'x-request-id', 'x-request-timeout-ms', 'traceparent', 'baggage'],
  ...ORIGIN_HEADERS,
].join(', ');

/**
 * Lets pages of the given origins read responses (the Fetch standard's CORS protocol); `*` means every origin. Credentials are not
 * allowed, because API keys are sent in a header, never in cookies. Without origins, no page of another site can read responses.
 */
export function installCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const anyOrigin = origins.includes('*');
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    // A cache must not reuse the response for another origin.
    if (!anyOrigin) reply.header('vary', 'origin');
    if (origin === undefined || !(anyOrigin || origins.includes(origin))) return;
    reply.header('access-control-allow-origin', anyOrigin ? '*' : origin);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      reply.header('access-control-expose-headers', EXPOSED_HEADERS);
      return;
    }
    return reply
      .header('access-control-allow-methods', 'GET, HEAD, POST')
      .header('access-control-allow-headers', ALLOWED_HEADERS)
      .header('access-control-max-age', PREFLIGHT_MAX_AGE_S)
      .code(204)
      .send();
  });
}
