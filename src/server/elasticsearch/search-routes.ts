import { untilAborted } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { EMPTY_ANSWER, type Hit, hasOtherHits } from '../../search/calls/query-outcome.ts';
import { addTimings, NO_TIMINGS } from '../../search/timings.ts';
import { separated, tooLarge } from '../dialects/parts/search-plan.ts';
import { clientError, ERROR_STATUS, isForOperator } from '../errors/error-status.ts';
import { RequestError } from '../errors/request-error.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { recordSearch } from '../record-search.ts';
import type { RecordedSearch } from '../recording/recorded-search.ts';
import type { ServerConfig } from '../server-config.ts';
import { type Continued, continuedId, onlyIndex, parseContinuedId, refuseChanged } from './continued-searches.ts';
import { ELASTICSEARCH_ERRORS, errorObject, illegalArgument } from './elasticsearch-error.ts';
import {
  type ElasticsearchReply,
  type ElasticsearchRequest,
  type ElasticsearchRoute,
  jsonReply,
  type UrlParameters,
} from './elasticsearch-route.ts';
import { parseJson } from './json-node.ts';
import { type IndexNames, requestedIndexes, searchedIndexes, withIndexes } from './leased-indexes.ts';
import { analysedTexts } from './query/dsl-query.ts';
import { runSearch, type SearchResult, searchedText } from './run-search.ts';
import { searchReply, shardsJson } from './search-reply.ts';
import {
  COMMON_PARAMETERS,
  INDEX_PARAMETERS,
  parseSearch,
  refuseLongTexts,
  refuseUnknownParameters,
  SEARCH_PARAMETERS,
  type SearchRequest,
} from './search-request.ts';
import { textOfOrderValue, unambiguous } from './sort-order.ts';
import { milliseconds } from './time-value.ts';

export const SEARCH_ROUTES: readonly ElasticsearchRoute[] = [
  { method: ['GET', 'POST'], url: '/_search', handle: search },
  { method: ['GET', 'POST'], url: '/:index/_search', handle: search },
  { method: ['GET', 'POST'], url: '/_search/scroll', handle: scroll },
  { method: 'DELETE', url: '/_search/scroll', handle: (asked) => free(asked, 'scroll_id') },
  { method: 'POST', url: '/:index/_pit', handle: openPit },
  { method: 'DELETE', url: '/_pit', handle: (asked) => free(asked, 'id') },
  { method: ['GET', 'POST'], url: '/_count', handle: count },
  { method: ['GET', 'POST'], url: '/:index/_count', handle: count },
  { method: ['GET', 'POST'], url: '/_msearch', handle: multiSearch },
  { method: ['GET', 'POST'], url: '/:index/_msearch', handle: multiSearch },
];

async function search(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { body, parameters } = asked;
  refuseUnknownParameters(asked, [...SEARCH_PARAMETERS, 'scroll']);
  if (parameters.scroll !== undefined) return scrollPage(asked, { body, parameters: givenParameters(parameters) });
  const parsed = parseSearch(body, parameters);
  const pit = parsed.pit === undefined ? undefined : parseContinuedId(parsed.pit);
  if (pit !== undefined && asked.path.index !== undefined) {
    throw illegalArgument('[indices] cannot be used with point in time. Do not specify any index with point in time.');
  }
  const names = pit === undefined ? requestedIndexes(asked) : { names: pit.index, ignoreUnavailable: false };
  const result = await searchIndexes(asked, parsed, names);
  if (pit !== undefined) refuseChanged(pit, onlyIndex(result.indexes, 'A point in time'));
  const more = parsed.pit === undefined ? '' : `,"pit_id":${JSON.stringify(parsed.pit)}`;
  const pieces = searchReply(result, parsed, elapsedMs(asked.request), more);
  return { pieces, searches: { count: 1, timings: result.timings } };
}

function givenParameters(parameters: UrlParameters): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, value ?? '']));
}

/** The first page of a scroll, or the next page of the scroll `begun`. */
async function scrollPage(
  asked: ElasticsearchRequest,
  { body, parameters }: Pick<NonNullable<Continued['scroll']>, 'body' | 'parameters'>,
  begun?: Continued,
): Promise<ElasticsearchReply> {
  const { scroll: keepAlive = '', ...others } = parameters;
  milliseconds(keepAlive, 'scroll');
  const sent = parseSearch(body, others);
  if (sent.pit !== undefined) throw illegalArgument('using [point in time] is not allowed in a scroll context');
  if (sent.from > 0) throw illegalArgument('using [from] is not allowed in a scroll context');
  if (sent.after !== undefined) throw illegalArgument('using [search_after] is not allowed in a scroll context');
  if (sent.size === 0) throw illegalArgument('[size] cannot be [0] in a scroll context');
  const search: SearchRequest = {
    ...sent,
    sort: unambiguous(sent.sort),
    trackScores: sent.trackScores || sent.sort === undefined,
    after: begun?.scroll?.after,
    trackTotal: begun === undefined && sent.trackTotal,
  };
  const names = begun === undefined ? requestedIndexes(asked) : { names: begun.index, ignoreUnavailable: false };
  const result = await searchIndexes(asked, search, names);
  const info = onlyIndex(result.indexes, 'A scroll');
  if (begun !== undefined) refuseChanged(begun, info);
  const total = begun?.scroll?.total ?? result.total;
  const after = result.hits.at(-1)?.orderValues?.map(textOfOrderValue) ?? begun?.scroll?.after ?? [];
  const id = continuedId(info, { body, parameters, after, total });
  const more = `,"_scroll_id":${JSON.stringify(id)}`;
  const pieces = searchReply({ ...result, total }, sent, elapsedMs(asked.request), more);
  return { pieces, searches: { count: 1, timings: result.timings } };
}

async function scroll(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  refuseUnknownParameters(asked, [...COMMON_PARAMETERS, 'rest_total_hits_as_int', 'scroll', 'scroll_id']);
  const members = asked.body.trim() === '' ? undefined : parseJson(asked.body).object('a scroll');
  const id = members?.get('scroll_id')?.text('[scroll_id]') ?? asked.parameters.scroll_id;
  if (id === undefined) throw illegalArgument('Validation Failed: 1: scrollId is missing;');
  const begun = parseContinuedId(id);
  if (begun.scroll === undefined) throw illegalArgument('The id is of a point in time, not of a scroll');
  return scrollPage(asked, begun.scroll, begun);
}

/** The server keeps nothing of a scroll or a point in time that it could free. */
function free({ body }: ElasticsearchRequest, name: string): ElasticsearchReply {
  const ids = body.trim() === '' ? [] : (parseJson(body).object('a request').get(name)?.items ?? []);
  for (const id of ids) parseContinuedId(id.text(`[${name}]`));
  return jsonReply({ succeeded: true, num_freed: ids.length });
}

async function openPit(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { keep_alive: keepAlive } = asked.parameters;
  refuseUnknownParameters(asked, [...COMMON_PARAMETERS, ...INDEX_PARAMETERS, 'keep_alive', 'preference', 'routing']);
  if (keepAlive === undefined) throw illegalArgument('[keep_alive] must be given, such as 1m');
  milliseconds(keepAlive, 'keep_alive');
  return withIndexes(asked, searchedIndexes(asked, requestedIndexes(asked)), async (retrievers) => {
    const infos = retrievers.map(({ info }) => info);
    const id = continuedId(onlyIndex(infos, 'A point in time'));
    return { pieces: [`{"id":"${id}","_shards":${shardsJson(1)}}`] };
  });
}

const COUNT_PARAMETERS = [...COMMON_PARAMETERS, ...INDEX_PARAMETERS, 'ignore_throttled', 'preference', 'routing'];

/** Counts the passages that a query matches, always exactly. */
async function count(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { body } = asked;
  refuseUnknownParameters(asked, COUNT_PARAMETERS);
  const members = body.trim() === '' ? [] : parseJson(body).object('a count');
  for (const [name, node] of members) {
    if (name !== 'query') throw node.fault(`request does not support [${name.slice(0, 100)}]`);
  }
  const parsed = { ...parseSearch(body, {}), size: 0, trackTotal: Number.POSITIVE_INFINITY };
  const { total, indexes, timings } = await searchIndexes(asked, parsed, requestedIndexes(asked));
  return { pieces: [`{"count":${total},"_shards":${shardsJson(indexes.length)}}`], searches: { count: 1, timings } };
}

async function searchIndexes(
  asked: ElasticsearchRequest,
  search: SearchRequest,
  names: IndexNames,
): Promise<SearchResult> {
  const { request, signal, routes } = asked;
  const indexes = searchedIndexes(asked, names);
  refuseTooLarge(search, routes.config);
  const definitionOf = (index: string) => routes.config.writable?.definition(index);
  const ready = indexes.map((name) => routes.config.writable?.beforeSearch(name));
  await untilAborted(Promise.all(ready), signal);
  return withIndexes(asked, indexes, async (retrievers) => {
    const result = await withinTime(search, signal, (limited) => runSearch(retrievers, search, definitionOf, limited));
    request.hooked?.note([result.perturbed]);
    for (const { info } of retrievers) {
      const hits = result.hits.filter(({ index }) => index.info === info);
      const { name: dialect } = ELASTICSEARCH_ERRORS;
      recordSearch(recordedSearch(search, hits, result), { request, dialect }, info, routes);
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

function recordedSearch(search: SearchRequest, hits: readonly Hit[], { perturbed }: SearchResult): RecordedSearch {
  const text = searchedText(search);
  const certificate = { exact: !hasOtherHits(perturbed), rescored: null };
  const outcome = { ...EMPTY_ANSWER, hits, text, certificate, perturbed };
  return { queries: [text], k: search.size, mode: 'bm25', outcomes: [outcome] };
}

/** @throws RequestError K_TOO_LARGE, QUERY_TOO_LONG */
function refuseTooLarge({ size, query, knn }: SearchRequest, config: ServerConfig): void {
  const { maxK } = config;
  if (size > maxK) {
    const msg = `size is ${size}; the limit of this server is ${maxK} passages per query (--max-k)`;
    throw tooLarge('size', `${msg}.`, 'Lower size.');
  }
  const texts = [...(query === undefined ? [] : [query]), ...knn].flatMap(analysedTexts);
  refuseLongTexts(texts, config);
}

const MULTI_SEARCH_PARAMETERS = [
  ...COMMON_PARAMETERS,
  'ccs_minimize_roundtrips',
  'max_concurrent_searches',
  'max_concurrent_shard_requests',
  'pre_filter_shard_size',
  'rest_total_hits_as_int',
  'search_type',
  'typed_keys',
];

/** The part of `maxReplyBytesInFlight` that one request may fill: all its replies are kept until its last search has ended. */
const MOST_OF_A_REQUEST = 1 / 4;

/** Several searches, one after another. Each has a status of its own. */
async function multiSearch(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, parameters, routes, signal } = asked;
  refuseUnknownParameters(asked, MULTI_SEARCH_PARAMETERS);
  const searches = readSearches(asked.body);
  const { maxQueries, maxHits, maxReplyBytesInFlight } = routes.config;
  const maxCharacters = Math.floor(MOST_OF_A_REQUEST * maxReplyBytesInFlight);
  if (searches.length > maxQueries) {
    const msg = `The request has ${searches.length} searches; the limit of this server is ${maxQueries}`;
    throw new RequestError('TOO_MANY_QUERIES', `${msg}.`, [{ type: 'too_long', loc: ['body'], msg }]);
  }
  const { rest_total_hits_as_int } = parameters;
  const replies: string[] = [];
  let characters = 0;
  let timings = NO_TIMINGS;
  let hits = 0;
  for (const { header, body } of searches) {
    const started = performance.now();
    try {
      const names = readHeader(header, requestedIndexes(asked).names);
      const search = parseSearch(body, { rest_total_hits_as_int });
      if (search.pit !== undefined) throw illegalArgument('[pit] is not supported in [_msearch]; use [_search]');
      if (characters > maxCharacters) {
        throw illegalArgument(
          `The replies to the searches before this one have ${characters} characters; the limit of this server is ${maxCharacters} per request. Send the rest in another request`,
        );
      }
      hits += search.size;
      if (hits > maxHits) {
        const limit = `the limit of this server is ${maxHits} per request`;
        throw illegalArgument(`The searches ask for ${hits} passages; ${limit}`);
      }
      const result = await searchIndexes(asked, search, names);
      timings = addTimings(timings, result.timings);
      const text = [...searchReply(result, search, performance.now() - started, ',"status":200')].join('');
      characters += text.length;
      replies.push(text);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const error = asTrawlError(thrown);
      const { statusOf, statuses } = ELASTICSEARCH_ERRORS;
      const status = statusOf?.(error) ?? statuses[error.code] ?? ERROR_STATUS[error.code];
      if (isForOperator(error.code)) request.log.error({ err: error, code: error.code }, 'search failed');
      replies.push(JSON.stringify(errorObject(clientError(error), status)));
    }
  }
  const took = Math.round(elapsedMs(request));
  return {
    pieces: [`{"took":${took},"responses":[`, ...separated(replies, (reply) => reply), ']}'],
    searches: { count: searches.length, timings },
  };
}

/** The searches of a body. Each is two lines: a header, which may name indexes, and the search. */
function readSearches(text: string): readonly { readonly header: string; readonly body: string }[] {
  if (text.trim() === '') throw illegalArgument('Validation Failed: 1: no requests added;');
  if (!text.endsWith('\n')) throw illegalArgument('The msearch request must be terminated by a newline [\\n]');
  const lines = text.slice(0, -1).split('\n');
  if (lines.length % 2 === 1) throw illegalArgument('The last header of the msearch request has no search after it');
  return Array.from({ length: lines.length / 2 }, (_, i) => ({ header: lines[2 * i]!, body: lines[2 * i + 1]! }));
}

/** Members of a header that change nothing here. */
const IGNORED_MEMBERS = [
  'allow_no_indices',
  'allow_partial_search_results',
  'ccs_minimize_roundtrips',
  'expand_wildcards',
  'ignore_throttled',
  'preference',
  'request_cache',
  'routing',
  'search_type',
];

/** The indexes of a search, which its header names, else the path. */
function readHeader(text: string, namesInPath: string | undefined): IndexNames {
  let names = namesInPath;
  let ignoreUnavailable = false;
  for (const [name, node] of text.trim() === '' ? [] : parseJson(text).object('a header')) {
    if (name === 'index' || name === 'indices') names = node.items.map((item) => item.text('[index]')).join(',');
    else if (name === 'ignore_unavailable') ignoreUnavailable = node.boolean(`[${name}]`);
    else if (!IGNORED_MEMBERS.includes(name)) {
      throw illegalArgument(`key [${name.slice(0, 100)}] is not supported in the metadata section`);
    }
  }
  return { names, ignoreUnavailable };
}
