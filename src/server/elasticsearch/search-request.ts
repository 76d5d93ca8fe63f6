import { RequestError } from '../errors/request-error.ts';
import type { ServerConfig } from '../server-config.ts';
import { ElasticsearchError, illegalArgument, searchPhaseFailure } from './elasticsearch-error.ts';
import type { ElasticsearchRequest, UrlParameters } from './elasticsearch-route.ts';
import { readWantedFields, type WantedField } from './field-values.ts';
import { type HighlightField, readHighlight } from './highlight/highlight-request.ts';
import { type JsonNode, parseJson, parseNumber } from './json-node.ts';
import { ignore, readBoolean, readInteger, readMembers, readNumber, readParameters, readText } from './query/clause.ts';
import type { BoostedKnn, DslQuery } from './query/dsl-query.ts';
import { parseKnnSearches, parseQuery } from './query/parse-query.ts';
import { parseSort, readSort, type SortCriterion, unambiguous } from './sort-order.ts';
import { parseSourceChoice, readSourceChoice, SOURCE_PARAMETERS, type SourceChoice } from './source-filter.ts';
import { milliseconds } from './time-value.ts';

/** A parsed search, which may run over several indexes. */
export interface SearchRequest {
  /** Undefined: all passages, or with `knn` none. */
  readonly query: DslQuery | undefined;
  /** The nearest passages. Their scores are added to the scores of the query. */
  readonly knn: readonly BoostedKnn[];
  readonly from: number;
  readonly size: number;
  readonly source: SourceChoice;
  /** Matching passages are counted exactly up to this number; false: they are not counted. */
  readonly trackTotal: number | false;
  readonly minScore: number | undefined;
  /** Undefined: by score. */
  readonly sort: readonly SortCriterion[] | undefined;
  /** The id of the point in time that is searched; undefined: the indexes as they are. */
  readonly pit: string | undefined;
  /** The sort values after which hits begin. */
  readonly after: readonly (string | null)[] | undefined;
  /** Whether hits have scores although they are sorted otherwise. */
  readonly trackScores: boolean;
  readonly fields: readonly WantedField[];
  readonly highlight: readonly HighlightField[];
  /** Limit of the time for the search in milliseconds; undefined: none of its own. */
  readonly timeoutMs: number | undefined;
  /** Whether the total is a number instead of an object, as clients of version 6 expect. */
  readonly totalAsInteger: boolean;
}

const DEFAULT_SIZE = 10;
/** Elasticsearch's limits: of an exact total unless the request wants more, and of `from + size`. */
const DEFAULT_TRACK_TOTAL = 10_000;
const MAX_WINDOW = 10_000;

/** Parameters of every route. `?index=` names the index, as on the other routes of the server. */
export const COMMON_PARAMETERS = ['error_trace', 'human', 'index', 'pretty'] as const;
/** Parameters of routes whose path may name several indexes. */
export const INDEX_PARAMETERS = ['allow_no_indices', 'expand_wildcards', 'ignore_unavailable'] as const;

export const SEARCH_PARAMETERS: readonly string[] = [
  ...COMMON_PARAMETERS,
  ...INDEX_PARAMETERS,
  ...SOURCE_PARAMETERS,
  'from',
  'rest_total_hits_as_int',
  'size',
  'sort',
  'timeout',
  'track_scores',
  'track_total_hits',
  // These change nothing here: an index is one shard, and a cache needs no permission.
  'allow_partial_search_results',
  'batched_reduce_size',
  'ccs_minimize_roundtrips',
  'ignore_throttled',
  'max_concurrent_shard_requests',
  'pre_filter_shard_size',
  'preference',
  'request_cache',
  'routing',
  'search_type',
  'typed_keys',
];

/** @throws ElasticsearchError as Elasticsearch does for a parameter that a route does not have. */
export function refuseUnknownParameters({ parameters, request }: ElasticsearchRequest, known: readonly string[]): void {
  const unknown = Object.keys(parameters).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const path = request.url.split('?')[0];
  const names = unknown.map((name) => `[${name.slice(0, 100)}]`).join(', ');
  throw illegalArgument(`request [${path}] contains unrecognized parameter${unknown.length > 1 ? 's' : ''}: ${names}`);
}

/** @throws RequestError QUERY_TOO_LONG */
export function refuseLongTexts(
  texts: readonly string[],
  { maxQueryChars }: Pick<ServerConfig, 'maxQueryChars'>,
): void {
  const long = texts.find(({ length }) => length > maxQueryChars);
  if (long === undefined) return;
  const msg = `A text of the request has ${long.length} characters; the limit of this server is ${maxQueryChars} (--max-query-chars)`;
  throw new RequestError('QUERY_TOO_LONG', `${msg}. Shorten it.`, [
    { type: 'string_too_long', loc: ['body', 'query'], msg },
  ]);
}

/** Parses the body and the parameters of a search. Without a body it finds all passages. @throws ElasticsearchError */
export function parseSearch(text: string, parameters: UrlParameters): SearchRequest {
  const body = text.trim() === '' ? undefined : readSearch(parseJson(text));
  const { from, size, sort, timeout, track_scores: trackScores, rest_total_hits_as_int: asInteger } = parameters;
  const totalAsInteger = asInteger !== undefined && booleanFrom(asInteger, 'rest_total_hits_as_int');
  const trackTotal = trackTotalFrom(parameters) ?? body?.track_total_hits ?? DEFAULT_TRACK_TOTAL;
  const givenSort = sort === undefined ? body?.sort : parseSort(sort);
  const pit = body?.pit;
  const search: SearchRequest = {
    query: body?.query,
    knn: body?.knn ?? [],
    from: from === undefined ? (body?.from ?? 0) : integerFrom(from, 'from'),
    size: size === undefined ? (body?.size ?? DEFAULT_SIZE) : integerFrom(size, 'size'),
    source: parseSourceChoice(parameters) ?? body?._source ?? 'all',
    trackTotal: totalAsInteger && trackTotal === DEFAULT_TRACK_TOTAL ? Number.POSITIVE_INFINITY : trackTotal,
    minScore: body?.min_score,
    sort: pit !== undefined && givenSort !== undefined ? unambiguous(givenSort) : givenSort,
    pit,
    after: body?.search_after,
    trackScores: trackScores === undefined ? (body?.track_scores ?? false) : booleanFrom(trackScores, 'track_scores'),
    fields: body?.fields ?? [],
    highlight: body?.highlight ?? [],
    timeoutMs: timeout === undefined ? body?.timeout : milliseconds(timeout, 'timeout'),
    totalAsInteger,
  };
  refuseInconsistent(search);
  return search;
}

/** @throws ElasticsearchError for values that do not fit each other. */
function refuseInconsistent({ from, size, trackTotal, totalAsInteger, after, sort }: SearchRequest): void {
  if (totalAsInteger && trackTotal !== Number.POSITIVE_INFINITY && trackTotal !== false) {
    throw illegalArgument(
      `[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, got ${trackTotal}`,
    );
  }
  if (from < 0) throw illegalArgument(`[from] parameter cannot be negative but was [${from}]`);
  if (size < 0) throw illegalArgument(`[size] parameter cannot be negative, found [${size}]`);
  if (from + size > MAX_WINDOW) {
    throw searchPhaseFailure({
      type: 'illegal_argument_exception',
      reason:
        `Result window is too large, from + size must be less than or equal to: [${MAX_WINDOW}] but was [${from + size}]. ` +
        'Use [scroll], or [search_after] with a sorted search.',
    });
  }
  if (after === undefined) return;
  if (from > 0) {
    const reason = 'Validation Failed: 1: [from] parameter must be set to 0 when [search_after] is used;';
    throw new ElasticsearchError(400, { type: 'action_request_validation_exception', reason });
  }
  if (sort?.length === after.length) return;
  const reason =
    sort === undefined
      ? 'Sort must contain at least one field.'
      : `search_after has ${after.length} value(s) but sort has ${sort.length}.`;
  throw searchPhaseFailure({ type: 'illegal_argument_exception', reason });
}

function readSearch(node: JsonNode) {
  node.object('a search');
  return readMembers(node, READERS, (name, value) =>
    UNSUPPORTED.includes(name)
      ? illegalArgument(`[${name}] is not supported by this server`)
      : value.fault(`Unknown key for a ${value.token} in [${name.slice(0, 100)}].`),
  );
}

const READERS = {
  query: parseQuery,
  knn: (node: JsonNode) => parseKnnSearches(node, parseQuery),
  fields: readWantedFields,
  highlight: readHighlight,
  from: readInteger,
  size: readInteger,
  _source: readSourceChoice,
  track_total_hits(node: JsonNode, what: string) {
    const { value } = node;
    const isBoolean = typeof value === 'boolean' || value === 'true' || value === 'false';
    return trackTotalOf(isBoolean ? node.boolean(what) : node.integer(what));
  },
  min_score: readNumber,
  pit(node: JsonNode) {
    const { id } = readParameters('pit', node, { id: readText, keep_alive: readText });
    if (id === undefined) throw node.fault('[pit] requires [id]');
    return id;
  },
  sort: readSort,
  search_after(node: JsonNode, what: string) {
    if (!Array.isArray(node.value) || node.value.length === 0)
      throw node.fault('[search_after] must be an array of the sort values of a hit');
    return node.value.map((item) => (item.value === null ? null : item.text(what)));
  },
  timeout: (node: JsonNode, what: string) => milliseconds(node.text(what), 'timeout'),
  track_scores: readBoolean,
  stats: ignore,
} as const;

/** Members of a search that Elasticsearch has and this server does not. */
const UNSUPPORTED = [
  'aggregations',
  'aggs',
  'collapse',
  'docvalue_fields',
  'explain',
  'ext',
  'indices_boost',
  'post_filter',
  'profile',
  'rank',
  'rescore',
  'retriever',
  'runtime_mappings',
  'script_fields',
  'seq_no_primary_term',
  'slice',
  'stored_fields',
  'sub_searches',
  'suggest',
  'terminate_after',
  'version',
];

function trackTotalFrom({ track_total_hits: text }: UrlParameters): number | false | undefined {
  if (text === undefined) return undefined;
  const isBoolean = /^(?:true|false|)$/.test(text);
  return trackTotalOf(isBoolean ? booleanFrom(text, 'track_total_hits') : integerFrom(text, 'track_total_hits'));
}

function trackTotalOf(value: boolean | number): number | false {
  if (typeof value === 'boolean') return value && Number.POSITIVE_INFINITY;
  if (value >= 0) return value;
  if (value === -1) return false;
  throw illegalArgument(`[track_total_hits] parameter must be positive or equals to -1, got ${value}`);
}

/** An integer of a parameter in the URL. @throws ElasticsearchError */
function integerFrom(text: string, name: string): number {
  const value = parseNumber(text);
  if (Number.isSafeInteger(value)) return value;
  throw notParsed(text, name, 'an int');
}

function booleanFrom(text: string, name: string): boolean {
  // A parameter without a value is true: `?pretty`.
  if (text === 'true' || text === '') return true;
  if (text === 'false') return false;
  throw notParsed(text, name, 'a boolean: only [true] or [false] are allowed');
}

function notParsed(text: string, name: string, as: string): ElasticsearchError {
  return illegalArgument(`Failed to parse value [${text.slice(0, 100)}] of the parameter [${name}] as ${as}`);
}
