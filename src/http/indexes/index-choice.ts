import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../errors/request-error.ts';

/** Start of a URL in absolute form, as clients send it to proxies; servers must accept it (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*(?=\/)/i;

/** `/indexes/NAME` before any route, for clients that can configure only a base URL. */
const PREFIX = /^\/indexes\/([^/?#]+)(?=\/)/;

const prefixes = new WeakMap<IncomingMessage, { readonly text: string; readonly name: string }>();

/** Removes the prefix that names an index from the URL to route. `chosenIndex` and `indexPrefix` return it later. */
export function takeIndexPrefix(request: IncomingMessage): string {
  const url = (request.url ?? '/').replace(ORIGIN, '');
  const [text, encoded] = PREFIX.exec(url) ?? [];
  if (text === undefined || encoded === undefined) return url;
  try {
    prefixes.set(request, { text, name: decodeURIComponent(encoded) });
  } catch {
    // The prefix cannot be decoded; the router answers 404.
    return url;
  }
  return url.slice(text.length);
}

/** The prefix that was removed from the request's path, for redirects. */
export function indexPrefix(request: IncomingMessage): string {
  return prefixes.get(request)?.text ?? '';
}

/**
 * The index that a request names in its path (`/indexes/NAME/retrieve`), its query string (`/retrieve?index=NAME`) or its
 * body; undefined for the default.
 *
 * @throws RequestError INVALID_REQUEST if it names different indexes.
 */
export function chosenIndex(request: FastifyRequest, inBody?: string): string | undefined {
  const { index } = request.query as Record<string, string | string[] | undefined>;
  const named = [prefixes.get(request.raw)?.name, ...[index ?? []].flat(), inBody].filter((name) => name !== undefined);
  if (named.some((name) => name !== named[0])) {
    const msg = `The request names different indexes: ${named.map((name) => JSON.stringify(name.slice(0, 100))).join(', ')}`;
    throw new RequestError('INVALID_REQUEST', `${msg}.`, [{ type: 'value_error', loc: ['query', 'index'], msg }]);
  }
  return named[0];
}

/**
 * Refuses an index in the URL of a request whose body lists several indexes.
 *
 * @throws RequestError INVALID_REQUEST.
 */
export function refuseOtherIndex(request: FastifyRequest): void {
  const inUrl = chosenIndex(request);
  if (inUrl === undefined) return;
  const msg = `The body lists indexes, but the URL names ${JSON.stringify(inUrl.slice(0, 100))}`;
  throw new RequestError('INVALID_REQUEST', `body.index: ${msg}. Send the request to a URL without an index.`, [
    { type: 'value_error', loc: ['body', 'index'], msg },
  ]);
}
