import { ElasticsearchError, illegalArgument, searchPhaseFailure } from './elasticsearch-error.ts';
import { type WantedField, wantedFieldsOf } from './field-values.ts';
import { type HighlightField, highlightOf } from './highlight/highlight-request.ts';
import { JsonBody, type JsonNode } from './json-nodes.ts';
import { booleanFrom, booleanOf, integerFrom, integerOf, numberOf, objectOf, textOf, tokenOf } from './json-values.ts';
import type { DslKnn, DslQuery } from './query/dsl-query.ts';
import { parseKnnSearches } from './query/knn-clause.ts';
import { parseQuery } from './query/parse-query.ts';
import { type SortCriterion, sortFrom, sortOf } from './sort-order.ts';
import { type SourceChoice, sourceChoiceFrom, sourceChoiceOf } from './source-filter.ts';
import { milliseconds } from './time-value.ts';

/** A parsed search, which may run over several indexes. */
export interface SearchRequest {
  /** Undefined: all passages, or with `knn` none. */
  readonly query: DslQuery | undefined;
  /** The nearest passages, whose scores are added to those of the query. */
  readonly knn: readonly (DslKnn & { readonly boost: number })[];
  readonly from: number;
  readonly size: number;
  readonly source: SourceChoice;
  /** Matching passages are counted exactly up to this number; false: they are not counted. */
  readonly trackTotal: number | false;
  readonly minScore: number | undefined;
  /** Undefined: by score. */
  readonly sort: readonly SortCriterion[] | undefined;
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

/** Parameters of a URL; an empty text for a parameter without a value. */
export type UrlParameters = Readonly<Record<string, string | undefined>>;

const DEFAULT_SIZE = 10;
/** Elasticsearch's limits: of an exact total unless the request wants more, and of `from + size`. */
const DEFAULT_TRACK_TOTAL = 10_000;
const MAX_WINDOW = 10_000;

/** Parameters that change nothing here: one shard, and a cache that needs no permission. */
const IGNORED_PARAMETERS = [
  'allow_no_indices',
  'allow_partial_search_results',
  'batched_reduce_size',
  'ccs_minimize_roundtrips',
  'error_trace',
  'expand_wildcards',
  'human',
  'ignore_throttled',
  'ignore_unavailable',
  'max_concurrent_shard_requests',
  'pre_filter_shard_size',
  'preference',
  'pretty',
  'request_cache',
  'routing',
  'search_type',
  'typed_keys',
  // `?index=` names the index, as on the other routes.
  'index',
] as const;
const READ_PARAMETERS = [
  '_source',
  '_source_excludes',
  '_source_includes',
  'from',
  'rest_total_hits_as_int',
  'size',
  'sort',
  'timeout',
  'track_scores',
  'track_total_hits',
] as const;

/** Parses the body and the parameters of a search. Without a body it finds all passages. @throws ElasticsearchError */
export function parseSearch(text: string, parameters: UrlParameters, path: string): SearchRequest {
  refuseUnknownParameters(parameters, [...IGNORED_PARAMETERS, ...READ_PARAMETERS], path);
  const draft = new SearchDraft();
  if (text.trim() !== '') draft.readBody(new JsonBody(text));
  draft.readParameters(parameters);
  return draft.checked();
}

/** @throws ElasticsearchError as Elasticsearch does for a parameter that a route does not have. */
export function refuseUnknownParameters(parameters: UrlParameters, known: readonly string[], path: string): void {
  const unknown = Object.keys(parameters).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const names = unknown.map((name) => `[${name.slice(0, 100)}]`).join(', ');
  throw illegalArgument(`request [${path}] contains unrecognized parameter${unknown.length > 1 ? 's' : ''}: ${names}`);
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A search while it is read. */
class SearchDraft {
  readonly #search: Mutable<SearchRequest> = {
    query: undefined,
    knn: [],
    from: 0,
    size: DEFAULT_SIZE,
    source: 'all',
    trackTotal: DEFAULT_TRACK_TOTAL,
    minScore: undefined,
    sort: undefined,
    after: undefined,
    trackScores: false,
    fields: [],
    highlight: [],
    timeoutMs: undefined,
    totalAsInteger: false,
  };

  readBody(body: JsonBody): void {
    const root = objectOf(body, body.root, 'a search');
    for (const [name, node] of root.members) {
      const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
      if (read === undefined) throw unknownKey(body, node, name);
      if (node.type !== 'null') read(this.#search, body, node);
    }
  }

  readParameters(parameters: UrlParameters): void {
    const search = this.#search;
    const { from, size, sort, timeout, track_total_hits: track, rest_total_hits_as_int: asInteger } = parameters;
    if (from !== undefined) search.from = integerFrom(from, 'from');
    if (size !== undefined) search.size = integerFrom(size, 'size');
    if (sort !== undefined) search.sort = sortFrom(sort);
    if (timeout !== undefined) search.timeoutMs = milliseconds(timeout, 'timeout');
    const { track_scores: trackScores } = parameters;
    if (trackScores !== undefined) search.trackScores = booleanFrom(trackScores, 'track_scores');
    if (track !== undefined) {
      search.trackTotal = /^(?:true|false|)$/.test(track)
        ? trackTotalOf(booleanFrom(track, 'track_total_hits'))
        : trackTotalOf(integerFrom(track, 'track_total_hits'));
    }
    search.source = sourceChoiceFrom(parameters) ?? search.source;
    if (asInteger === undefined || !booleanFrom(asInteger, 'rest_total_hits_as_int')) return;
    search.totalAsInteger = true;
    if (search.trackTotal === DEFAULT_TRACK_TOTAL) search.trackTotal = Number.POSITIVE_INFINITY;
    if (search.trackTotal !== Number.POSITIVE_INFINITY && search.trackTotal !== false) {
      throw illegalArgument(
        `[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, got ${search.trackTotal}`,
      );
    }
  }

  checked(): SearchRequest {
    const search = this.#search;
    if (search.from < 0) throw illegalArgument(`[from] parameter cannot be negative but was [${search.from}]`);
    if (search.size < 0) throw illegalArgument(`[size] parameter cannot be negative, found [${search.size}]`);
    if (search.from + search.size > MAX_WINDOW) throw windowTooLarge(search.from + search.size);
    checkAfter(search);
    return search;
  }
}

type Read = (search: Mutable<SearchRequest>, body: JsonBody, node: JsonNode) => void;

const READERS: Readonly<Record<string, Read>> = {
  query(search, body, node) {
    search.query = parseQuery(body, node);
  },
  knn(search, body, node) {
    search.knn = parseKnnSearches(body, node, (inner) => parseQuery(body, inner));
  },
  fields(search, body, node) {
    search.fields = wantedFieldsOf(body, node);
  },
  highlight(search, body, node) {
    search.highlight = highlightOf(body, node);
  },
  from(search, body, node) {
    search.from = integerOf(body, node, '[from]');
  },
  size(search, body, node) {
    search.size = integerOf(body, node, '[size]');
  },
  _source(search, body, node) {
    search.source = sourceChoiceOf(body, node);
  },
  track_total_hits(search, body, node) {
    const isBoolean = node.type === 'boolean' || (node.type === 'string' && /^(?:true|false)$/.test(node.value));
    search.trackTotal = trackTotalOf(
      isBoolean ? booleanOf(body, node, '[track_total_hits]') : integerOf(body, node, '[track_total_hits]'),
    );
  },
  min_score(search, body, node) {
    search.minScore = numberOf(body, node, '[min_score]');
  },
  sort(search, body, node) {
    search.sort = sortOf(body, node);
  },
  search_after(search, body, node) {
    if (node.type !== 'array' || node.items.length === 0) {
      throw body.fault(node, '[search_after] must be an array of the sort values of a hit');
    }
    search.after = node.items.map((item) => (item.type === 'null' ? null : textOf(body, item, '[search_after]')));
  },
  timeout(search, body, node) {
    search.timeoutMs = milliseconds(textOf(body, node, '[timeout]'), 'timeout');
  },
  track_scores(search, body, node) {
    search.trackScores = booleanOf(body, node, '[track_scores]');
  },
  // It changes nothing here.
  stats: () => undefined,
};

/** Members of a search that Elasticsearch has and this server does not. */
const UNSUPPORTED = [
  'aggregations',
  'aggs',
  'collapse',
  'docvalue_fields',
  'explain',
  'ext',
  'indices_boost',
  'pit',
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

function unknownKey(body: JsonBody, node: JsonNode, name: string): ElasticsearchError {
  if (UNSUPPORTED.includes(name)) return illegalArgument(`[${name}] is not supported by this server`);
  return body.fault(node, `Unknown key for a ${tokenOf(node)} in [${name.slice(0, 100)}].`);
}

function trackTotalOf(value: boolean | number): number | false {
  if (typeof value === 'boolean') return value && Number.POSITIVE_INFINITY;
  if (value >= 0) return value;
  if (value === -1) return false;
  throw illegalArgument(`[track_total_hits] parameter must be positive or equals to -1, got ${value}`);
}

/** @throws ElasticsearchError if `search_after` does not fit the other members. */
function checkAfter({ after, sort, from }: SearchRequest): void {
  if (after === undefined) return;
  if (from > 0) {
    const reason = 'Validation Failed: 1: [from] parameter must be set to 0 when [search_after] is used;';
    throw new ElasticsearchError(400, { type: 'action_request_validation_exception', reason });
  }
  const values = `search_after has ${after.length} value(s) but sort has ${sort?.length}.`;
  const reason = sort === undefined ? 'Sort must contain at least one field.' : values;
  if (sort?.length !== after.length) throw searchPhaseFailure({ type: 'illegal_argument_exception', reason });
}

function windowTooLarge(window: number): ElasticsearchError {
  return searchPhaseFailure({
    type: 'illegal_argument_exception',
    reason:
      `Result window is too large, from + size must be less than or equal to: [${MAX_WINDOW}] but was [${window}]. This server has ` +
      'no scroll API; [search_after] continues a sorted search.',
  });
}
