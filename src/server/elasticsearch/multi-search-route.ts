import { asTrawlError } from '../../base/errors.ts';
import { addTimings, NO_TIMINGS } from '../../search/timings.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { RequestError } from '../errors/request-error.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { type ElasticsearchError, illegalArgument } from './elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { ELASTICSEARCH_ERRORS, elasticsearchError } from './error-format.ts';
import { JsonBody } from './json-nodes.ts';
import { booleanOf, itemsOf, objectOf, textOf } from './json-values.ts';
import { searchReply } from './search-reply.ts';
import { parseSearch, refuseUnknownParameters, type UrlParameters } from './search-request.ts';
import { integersOf, requestedIndexes, searchIndexes } from './search-route.ts';

export const MULTI_SEARCH_ROUTES: readonly ElasticsearchRoute[] = ['/_msearch', '/:index/_msearch'].map((url) => ({
  method: ['GET', 'POST'],
  url,
  handle: multiSearch,
}));

const PARAMETERS = [
  'ccs_minimize_roundtrips',
  'index',
  'max_concurrent_searches',
  'max_concurrent_shard_requests',
  'pretty',
  'human',
  'error_trace',
  'pre_filter_shard_size',
  'rest_total_hits_as_int',
  'search_type',
  'typed_keys',
];

/** The part of `maxReplyBytesInFlight` that one request may fill: all its replies are kept until its last search has ended. */
const MOST_OF_A_REQUEST = 1 / 4;

/** A search of a body with several: the line that names its indexes, and the line with the search. */
interface Part {
  readonly header: string;
  readonly body: string;
}

/** Several searches, one after another. Each has a status of its own. */
async function multiSearch(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, body, parameters, routes, signal } = asked;
  refuseUnknownParameters(parameters, PARAMETERS, request.url.split('?')[0]!);
  const parts = partsOf(body);
  const { maxQueries, maxReplyBytesInFlight } = routes.config;
  const most = Math.floor(MOST_OF_A_REQUEST * maxReplyBytesInFlight);
  if (parts.length > maxQueries) {
    const msg = `The request has ${parts.length} searches; the limit of this server is ${maxQueries}`;
    throw new RequestError('TOO_MANY_QUERIES', `${msg}.`, [{ type: 'too_long', loc: ['body'], msg }]);
  }
  const replies: string[] = [];
  let characters = 0;
  let timings = NO_TIMINGS;
  let hits = 0;
  for (const part of parts) {
    const started = performance.now();
    try {
      const { names, ignoreUnavailable } = headerOf(part.header, requestedIndexes(asked));
      const { rest_total_hits_as_int: asInteger } = parameters;
      const shared: UrlParameters = asInteger === undefined ? {} : { rest_total_hits_as_int: asInteger };
      const parsed = parseSearch(part.body, shared, '/_msearch');
      if (characters > most) throw tooLong(characters, most);
      hits += parsed.size;
      if (hits > routes.config.maxHits) throw tooManyHits(hits, routes.config.maxHits);
      const result = await searchIndexes(asked, parsed, { names, ignoreUnavailable });
      timings = addTimings(timings, result.timings);
      const took = Math.round(performance.now() - started);
      const reply = searchReply(result, parsed, { took, more: ',"status":200', integersOf: integersOf(asked) });
      const text = [...reply].join('');
      characters += text.length;
      replies.push(text);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const error = asTrawlError(thrown);
      const status =
        ELASTICSEARCH_ERRORS.statusOf?.(error) ?? ELASTICSEARCH_ERRORS.statuses[error.code] ?? ERROR_STATUS[error.code];
      if (status === 500) request.log.error({ err: error, code: error.code }, 'search failed');
      replies.push(JSON.stringify(elasticsearchError(error, status)));
    }
  }
  const took = Math.round(elapsedMs(request));
  const pieces = replies.flatMap((reply, i) => (i === 0 ? [reply] : [',', reply]));
  return {
    pieces: [`{"took":${took},"responses":[`, ...pieces, ']}'],
    searches: { count: parts.length, timings },
  };
}

function tooManyHits(hits: number, most: number): ElasticsearchError {
  return illegalArgument(`The searches ask for ${hits} passages; the limit of this server is ${most} per request`);
}

function tooLong(characters: number, most: number): ElasticsearchError {
  return illegalArgument(
    `The replies to the searches before this one have ${characters} characters; the limit of this server is ${most} per request. Send the rest in another request`,
  );
}

/** The lines of a body, two for each search. */
function partsOf(text: string): readonly Part[] {
  if (text.trim() === '') throw noRequests();
  if (!text.endsWith('\n')) throw illegalArgument('The msearch request must be terminated by a newline [\\n]');
  const lines = text.slice(0, -1).split('\n');
  const parts: Part[] = [];
  for (let i = 0; i < lines.length; i += 2) {
    const [header = '', body] = [lines[i], lines[i + 1]];
    if (body === undefined) throw illegalArgument('The last header of the msearch request has no search after it');
    parts.push({ header, body });
  }
  return parts;
}

function noRequests(): ElasticsearchError {
  return illegalArgument('Validation Failed: 1: no requests added;');
}

/** The indexes of a search: those of its header, else those of the path. */
function headerOf(text: string, names: string | undefined): { names: string | undefined; ignoreUnavailable: boolean } {
  let found = names;
  let ignoreUnavailable = false;
  if (text.trim() === '') return { names: found, ignoreUnavailable };
  const body = new JsonBody(text);
  for (const [name, node] of objectOf(body, body.root, 'a header').members) {
    if (name === 'index' || name === 'indices') {
      found = itemsOf(node)
        .map((item) => textOf(body, item, '[index]'))
        .join(',');
    } else if (name === 'ignore_unavailable') ignoreUnavailable = booleanOf(body, node, `[${name}]`);
    else if (!HEADER_MEMBERS.includes(name)) {
      throw illegalArgument(`key [${name.slice(0, 100)}] is not supported in the metadata section`);
    }
  }
  return { names: found, ignoreUnavailable };
}

/** Members of a header that change nothing here. */
const HEADER_MEMBERS = [
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
