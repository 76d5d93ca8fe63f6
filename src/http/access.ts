import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TrawlError } from '../errors.ts';
import type { AccessKeys } from './access-keys.ts';
import type { Dialect } from './dialects/dialect.ts';

/** Who may call a route once keys are set: everybody, holders of a key, holders of an admin key. */
export type Access = 'open' | 'read' | 'admin';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: read. */
    access?: Access;
    /** The only dialect of the route, which words its errors. */
    onlyDialect?: Dialect | null;
  }
}

/** What a browser or a proxy adds to a call that somebody else makes. */
const FOREIGN_HEADERS = ['origin', 'sec-fetch-site', 'forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/**
 * Asks for keys before anything of a request is read. Without keys everybody may search, and administration is for callers
 * on this machine alone; a browser's page or a proxy that calls from there is not one.
 */
export function installAccess(app: FastifyInstance, keys: AccessKeys | null): void {
  app.addHook('onRequest', async (request, reply) => {
    const { access = 'read', onlyDialect = null } = request.routeOptions.config;
    if (access === 'open') return;
    request.dialect = onlyDialect;
    if (keys === null) {
      if (access === 'admin') requireThisMachine(request);
      return;
    }
    requireKey(keys, access, request, reply);
  });
}

function requireThisMachine({ headers, raw }: FastifyRequest): void {
  const foreign = FOREIGN_HEADERS.some((name) => headers[name] !== undefined);
  if (!foreign && isLoopback(raw.socket.remoteAddress)) return;
  throw new TrawlError(
    'FORBIDDEN',
    'Administration is for callers on the server itself, or with an admin key (trawl serve --keys-file).',
  );
}

export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

function requireKey(keys: AccessKeys, access: 'read' | 'admin', request: FastifyRequest, reply: FastifyReply): void {
  const { authorization } = request.headers;
  const scope = keys.scopeOf(authorization);
  if (scope === null) {
    const problem = authorization === undefined ? '' : ', error="invalid_token"';
    reply.header('www-authenticate', `Bearer realm="trawl"${problem}`);
    throw new TrawlError(
      'UNAUTHORIZED',
      authorization === undefined
        ? 'This server wants a key: send the header "authorization: Bearer KEY".'
        : 'The key in the authorization header is none of this server, or the header is not "Bearer KEY".',
    );
  }
  if (access === 'admin' && scope !== 'admin') {
    reply.header('www-authenticate', 'Bearer realm="trawl", error="insufficient_scope", scope="admin"');
    throw new TrawlError('FORBIDDEN', 'This key may search, not administer: the route wants one of scope admin.');
  }
}
