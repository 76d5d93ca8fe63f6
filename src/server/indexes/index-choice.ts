import type { FastifyRequest } from 'fastify';
import { RequestError } from '../errors/request-error.ts';
import { pathIndex } from './path-prefix.ts';

/**
 * The index that a request names in its path (`/indexes/NAME/retrieve`), its query string (`/retrieve?index=NAME`) or its
 * body; undefined for the default.
 *
 * @throws RequestError INVALID_REQUEST if it names different indexes.
 */
export function chosenIndex(request: FastifyRequest, inBody?: string): string | undefined {
  const { index } = request.query as Record<string, string | string[] | undefined>;
  const named = [pathIndex(request.raw), ...[index ?? []].flat(), inBody].filter((name) => name !== undefined);
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
