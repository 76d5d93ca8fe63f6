import { RequestError } from '../errors/request-error.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import type { ServerConfig } from '../server-config.ts';
import type { DoorReply, DoorRequest, DoorRoute } from './door-route.ts';
import { indexesOf, withIndexes } from './leased-indexes.ts';
import { runSearch, type SearchResult } from './run-search.ts';
import { searchReply } from './search-reply.ts';
import { parseSearch, type SearchRequest } from './search-request.ts';

export const SEARCH_ROUTES: readonly DoorRoute[] = ['/_search', '/:index/_search'].map((url) => ({
  method: ['GET', 'POST'],
  url,
  handle: search,
}));

async function search(door: DoorRequest): Promise<DoorReply> {
  const { request, body, parameters } = door;
  const parsed = parseSearch(body, parameters, request.url.split('?')[0]!);
  const result = await searchIndexes(door, parsed, {
    names: requestedIndexes(door),
    ignoreUnavailable: parameters.ignore_unavailable === 'true',
  });
  const took = Math.round(elapsedMs(request));
  return { pieces: searchReply(result, parsed, { took }), searches: { count: 1, timings: result.timings } };
}

/** The indexes that a request names in its path, or elsewhere as on the other routes. */
export function requestedIndexes({ request, path }: DoorRequest): string | undefined {
  return path.index ?? chosenIndex(request);
}

export function searchIndexes(
  { signal, routes: { holder, config } }: Pick<DoorRequest, 'signal' | 'routes'>,
  parsed: SearchRequest,
  names: Parameters<typeof indexesOf>[1],
): Promise<SearchResult> {
  const indexes = indexesOf(holder, names);
  refuseTooMany(parsed, config);
  return withIndexes(holder, indexes, (retrievers) => runSearch(retrievers, parsed, signal));
}

/** @throws RequestError K_TOO_LARGE */
function refuseTooMany({ size }: SearchRequest, { maxK }: Pick<ServerConfig, 'maxK'>): void {
  if (size <= maxK) return;
  const msg = `size is ${size}; the limit of this server is ${maxK} passages per query (--max-k)`;
  throw new RequestError('K_TOO_LARGE', `${msg}. Lower size.`, [
    { type: 'less_than_equal', loc: ['body', 'size'], msg },
  ]);
}
