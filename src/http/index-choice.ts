import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RequestError } from './request-error.ts';

/** The form of a URL that proxies are sent (RFC 9112, section 3.2.2), which every server has to take. */
const ORIGIN = /^https?:\/\/[^/?#]*(?=\/)/i;

/** `/indexes/NAME` before any route: for clients whose base URL is all that can be set. */
const PREFIX = /^\/indexes\/([^/?#]+)(?=\/)/;

const prefixes = new WeakMap<IncomingMessage, { readonly text: string; readonly name: string }>();

/** The URL that is routed: without the prefix that names an index, which is remembered. */
export function takeIndexPrefix(request: IncomingMessage): string {
  const url = (request.url ?? '/').replace(ORIGIN, '');
  const [text, encoded] = PREFIX.exec(url) ?? [];
  if (text === undefined || encoded === undefined) return url;
  try {
    prefixes.set(request, { text, name: decodeURIComponent(encoded) });
  } catch {
    // No name can be written so: the path is unknown as it stands.
    return url;
  }
  return url.slice(text.length);
}

/** What was taken from the request's path, for a redirect to put back. */
export function indexPrefix(request: IncomingMessage): string {
  return prefixes.get(request)?.text ?? '';
}

/**
 * The index that a request names: in its path (`/indexes/NAME/retrieve`), its query string (`/retrieve?index=NAME`) or its
 * body; undefined for the default. Named in two ways it has to be the same one.
 *
 * @throws RequestError INVALID_REQUEST.
 */
export function chosenIndex(request: FastifyRequest, inBody?: string): string | undefined {
  const { index } = request.query as Record<string, string | string[] | undefined>;
  const named = [prefixes.get(request.raw)?.name, ...[index ?? []].flat(), inBody].filter((name) => name !== undefined);
  if (named.some((name) => name !== named[0])) {
    const msg = `The request names several indexes: ${named.map((name) => JSON.stringify(name.slice(0, 100))).join(', ')}`;
    throw new RequestError('INVALID_REQUEST', `${msg}.`, [{ type: 'value_error', loc: ['query', 'index'], msg }]);
  }
  return named[0];
}
