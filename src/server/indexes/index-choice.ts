import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isViewName } from '../../index/views/view-definition.ts';
import { RequestError } from '../errors/request-error.ts';

/**
 * The index that a request names in its path (`/indexes/NAME/retrieve`), its query string (`/retrieve?index=NAME`) or its
 * body; undefined for the default.
 *
 * @throws RequestError INVALID_REQUEST if it names different indexes.
 */
export function chosenIndex(request: FastifyRequest, inBody?: string): string | undefined {
  const { index } = request.query as Record<string, string | string[] | undefined>;
  const named = [prefixes.get(request.raw)?.indexes, ...[index ?? []].flat(), inBody].filter(
    (name) => name !== undefined,
  );
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

/** Start of a URL in absolute form, as clients send it to proxies; servers must accept it (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*(?=\/)/i;

/** `/indexes/NAME` or `/views/NAME` before any route, for clients that can configure only a base URL. */
const PREFIX = /^\/(indexes|views)\/([^/?#]+)(?=\/)/;

interface Prefixes {
  /** The removed beginning of the path. */
  readonly text: string;
  readonly indexes?: string;
  readonly views?: string;
}

const prefixes = new WeakMap<IncomingMessage, Prefixes>();

/**
 * The URL to route: without the prefixes that name an index and a view, each at most once, in any order. A link to read becomes a parameter
 * of `/reader`, so that the parameters of the link are not taken for the request's.
 */
export function takePathPrefix(request: IncomingMessage): string {
  let url = (request.url ?? '/').replace(ORIGIN, '');
  let taken: Prefixes = { text: '' };
  for (let match = PREFIX.exec(url); match !== null; match = PREFIX.exec(url)) {
    const [text, kind, encoded] = match as unknown as [string, 'indexes' | 'views', string];
    const name = decoded(encoded);
    // The router answers 404.
    if (name === undefined || taken[kind] !== undefined || (kind === 'views' && !isViewName(name))) break;
    taken = { ...taken, text: taken.text + text, [kind]: name };
    url = url.slice(text.length);
  }
  if (taken.text !== '') prefixes.set(request, taken);
  return readerPath(url);
}

/** A URL in place of a path, as clients of Jina's reader send it: also encoded, after `?url=`, or with the slashes that a proxy joined. */
const LINK = /^\/((?:https?|trawl)(?::|%3A)(?:\/|%2F).*)$/i;

function readerPath(url: string): string {
  if (url.startsWith('/?url=')) return `/reader${url.slice(1)}`;
  const path = LINK.exec(url)?.[1];
  if (path === undefined) return url;
  const link = (/^\w+%3A/i.test(path) ? decoded(path) : undefined) ?? path;
  return `/reader?url=${encodeURIComponent(link.replace(/:\/+/, '://'))}`;
}

/** The prefixes that were removed from the request's path, for redirects. */
export function pathPrefix(request: IncomingMessage): string {
  return prefixes.get(request)?.text ?? '';
}

/** The view that a prefix of the request's path names. */
export function pathView(request: IncomingMessage): string | undefined {
  return prefixes.get(request)?.views;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
