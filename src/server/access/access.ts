import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import type { ErrorFormat } from '../dialects/dialect.ts';
import { isElasticsearch } from '../elasticsearch/elasticsearch-error.ts';
import { ORIGIN_HEADERS } from '../recording/read-origins.ts';
import type { AccessKeys, Grant } from './access-keys.ts';

/** Who may call a route if the server has keys: everyone, clients with a key, or clients with an admin key. */
export type Access = 'open' | 'read' | 'admin';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: read. */
    access?: Access | ((request: FastifyRequest) => Access);
    /** The only dialect of the route, which decides the format of errors; null if the body decides. */
    onlyDialect?: ErrorFormat | null;
  }
}

/** What clients of Elasticsearch send, beside Bearer. */
const ELASTICSEARCH_SCHEMES = ['Basic realm="security", charset="UTF-8"', 'ApiKey'];

/** Headers that browsers and proxies add. A request with one of them may come from another machine or another site. */
const BROWSER_OR_PROXY_HEADERS = [
  'origin',
  'sec-fetch-site',
  'forwarded',
  'x-forwarded-for',
  'x-real-ip',
  'via',
] as const;

/**
 * Checks the API key before the body is read. A server without keys lets everyone search, and accepts administration only
 * from clients on the same machine that are neither a browser nor a proxy.
 */
export function installAccess(app: FastifyInstance, keys: AccessKeys | null): void {
  app.addHook('onRequest', async (request, reply) => {
    const { access: configured = 'read', onlyDialect = null } = request.routeOptions.config;
    const access = typeof configured === 'function' ? configured(request) : configured;
    if (access === 'open') return;
    request.dialect = onlyDialect;
    if (keys === null) {
      if (access === 'admin') requireThisMachine(request);
      return;
    }
    request.keyViews = requireKey(keys, access, request, reply).views;
  });
}

function requireThisMachine({ headers, raw }: FastifyRequest): void {
  const isForwarded = BROWSER_OR_PROXY_HEADERS.some((name) => headers[name] !== undefined);
  if (!isForwarded && isLoopback(raw.socket.remoteAddress)) return;
  throw new TrawlError(
    'FORBIDDEN',
    'Administration requires an admin key (trawl serve --keys-file) or, without keys, a client on the same machine.',
  );
}

export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

/** The Authorization header, or else the key in `x-api-key`, where clients of web searches send it. */
function credentialsOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['x-api-key'];
  return headers.authorization ?? (typeof key === 'string' ? `Bearer ${key}` : undefined);
}

function requireKey(keys: AccessKeys, access: 'read' | 'admin', request: FastifyRequest, reply: FastifyReply): Grant {
  const authorization = credentialsOf(request);
  const grant = keys.grantOf(authorization);
  if (grant === null) {
    const problem = authorization === undefined ? '' : ', error="invalid_token"';
    const bearer = `Bearer realm="trawl"${problem}`;
    reply.header('www-authenticate', isElasticsearch(request) ? [...ELASTICSEARCH_SCHEMES, bearer] : bearer);
    throw new TrawlError(
      'UNAUTHORIZED',
      authorization === undefined
        ? 'This server requires an API key. Send the header "authorization: Bearer KEY".'
        : 'The API key is not valid for this server. Expected the header "authorization: Bearer KEY" with one of its keys.',
    );
  }
  if (access === 'admin' && grant.scope !== 'admin') {
    reply.header('www-authenticate', 'Bearer realm="trawl", error="insufficient_scope", scope="admin"');
    throw new TrawlError('FORBIDDEN', 'This API key has the scope read, but this route requires the scope admin.');
  }
  return grant;
}

/** How long a browser may cache the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600;
const EXPOSED_HEADERS =
  'server-timing, x-request-id, x-trawl-view, x-trawl-exact, x-trawl-short, x-trawl-perturbed, x-trawl-record-ignored, retry-after';
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
