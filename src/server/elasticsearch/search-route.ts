import { TrawlError } from '../../base/errors.ts';
import { type Hit, hasOtherHits } from '../../search/calls/query-outcome.ts';
import { RequestError } from '../errors/request-error.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { recordSearch } from '../record-search.ts';
import type { RecordedSearch } from '../recording/recorded-search.ts';
import type { ServerConfig } from '../server-config.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { ELASTICSEARCH_ERRORS } from './error-format.ts';
import { type IndexNames, searchedIndexes, withIndexes } from './leased-indexes.ts';
import { analysedTexts } from './query/dsl-query.ts';
import { runSearch, type SearchResult, textOf } from './run-search.ts';
import { searchReply } from './search-reply.ts';
import { parseSearch, type SearchRequest } from './search-request.ts';

export const SEARCH_ROUTES: readonly ElasticsearchRoute[] = ['/_search', '/:index/_search'].map((url) => ({
  method: ['GET', 'POST'],
  url,
  handle: search,
}));

async function search(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, body, parameters } = asked;
  const parsed = parseSearch(body, parameters, request.url.split('?')[0]!);
  const result = await searchIndexes(asked, parsed, {
    names: requestedIndexes(asked),
    ignoreUnavailable: parameters.ignore_unavailable === 'true',
  });
  const took = Math.round(elapsedMs(request));
  const pieces = searchReply(result, parsed, { took, integersOf: integersOf(asked) });
  return { pieces, searches: { count: 1, timings: result.timings } };
}

/** The indexes that a request names in its path, or elsewhere as on the other routes. */
export function requestedIndexes({ request, path }: ElasticsearchRequest): string | undefined {
  return path.index ?? chosenIndex(request);
}

/** For replies: the columns that the indexes which were made over HTTP have as `long` or another type of integers. */
export function integersOf({ routes }: Pick<ElasticsearchRequest, 'routes'>): (index: string) => ReadonlySet<string> {
  return (index) => {
    const columns = routes.config.writable?.definition(index)?.columns ?? [];
    return new Set(columns.flatMap(({ name, integer }) => (integer ? [name] : [])));
  };
}

export function searchIndexes(
  { request, signal, routes }: Pick<ElasticsearchRequest, 'request' | 'signal' | 'routes'>,
  parsed: SearchRequest,
  names: IndexNames,
): Promise<SearchResult> {
  const indexes = searchedIndexes({ request, routes }, names);
  refuseTooMany(parsed, routes.config);
  refuseLongTexts(parsed, routes.config);
  return withIndexes({ request, routes }, indexes, async (retrievers) => {
    const result = await withinTime(parsed, signal, (limited) => runSearch(retrievers, parsed, limited));
    const { name: dialect } = ELASTICSEARCH_ERRORS;
    request.hooked?.note([result.perturbed]);
    for (const { info } of retrievers) {
      const hits = result.hits.filter(({ index }) => index.info === info);
      recordSearch(recorded(parsed, hits, result), { request, dialect }, info, routes);
    }
    return result;
  });
}

/** The result, or DEADLINE_EXCEEDED after the `timeout` of the request: a search has no partial results. */
async function withinTime<T>(
  { timeoutMs }: SearchRequest,
  signal: AbortSignal,
  search: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (timeoutMs === undefined) return search(signal);
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await search(AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (signal.aborted || !timeout.aborted) throw error;
    throw new TrawlError('DEADLINE_EXCEEDED', `The search was not finished within its timeout of ${timeoutMs} ms.`);
  }
}

function recorded(search: SearchRequest, hits: readonly Hit[], { perturbed }: SearchResult): RecordedSearch {
  const text = textOf(search);
  const outcome = {
    ok: true,
    hits,
    tokens: 0,
    truncated: false,
    text,
    cut: 'nothing',
    vector: null,
    certificate: { exact: !hasOtherHits(perturbed), rescored: null },
    perturbed,
  } as const;
  return { queries: [text], k: search.size, mode: 'bm25', outcomes: [outcome] };
}

/** @throws RequestError K_TOO_LARGE */
function refuseTooMany({ size }: SearchRequest, { maxK }: Pick<ServerConfig, 'maxK'>): void {
  if (size <= maxK) return;
  const msg = `size is ${size}; the limit of this server is ${maxK} passages per query (--max-k)`;
  throw new RequestError('K_TOO_LARGE', `${msg}. Lower size.`, [
    { type: 'less_than_equal', loc: ['body', 'size'], msg },
  ]);
}

/** @throws RequestError QUERY_TOO_LONG */
function refuseLongTexts({ query, knn }: SearchRequest, { maxQueryChars }: Pick<ServerConfig, 'maxQueryChars'>): void {
  for (const searched of query === undefined ? knn : [query, ...knn]) {
    for (const { length } of analysedTexts(searched)) {
      if (length <= maxQueryChars) continue;
      const msg = `A text of the query has ${length} characters; the limit of this server is ${maxQueryChars} (--max-query-chars)`;
      throw new RequestError('QUERY_TOO_LONG', `${msg}. Shorten it.`, [
        { type: 'string_too_long', loc: ['body', 'query'], msg },
      ]);
    }
  }
}
