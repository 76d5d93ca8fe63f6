import type { FastifyRequest } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import type { ErrorFormat } from '../dialects/dialect.ts';

/** The place of a fault in a body, from 1. */
export interface Location {
  readonly line: number;
  readonly col: number;
}

/** An error as Elasticsearch writes it. Some types have further members, such as `index`. */
interface ErrorCause extends Partial<Location>, Readonly<Record<string, unknown>> {
  readonly type: string;
  readonly reason: string;
}

export class ElasticsearchError extends TrawlError {
  readonly status: number;
  readonly failure: ErrorCause;
  readonly root: ErrorCause;

  /** @param root default: the error itself. */
  constructor(status: number, cause: ErrorCause, root: ErrorCause = cause) {
    super(status === 404 ? 'NOT_FOUND' : 'INVALID_REQUEST', cause.reason);
    this.status = status;
    this.failure = cause;
    this.root = root;
  }
}

export function illegalArgument(reason: string): ElasticsearchError {
  return new ElasticsearchError(400, { type: 'illegal_argument_exception', reason });
}

/** A fault whose message begins with its place. */
export function contentException(
  { line, col }: Location,
  reason: string,
  more: { readonly caused_by?: ErrorCause; readonly root?: ErrorCause } = {},
): ElasticsearchError {
  const { root, ...members } = more;
  const cause = { type: 'x_content_parse_exception', reason: `[${line}:${col}] ${reason}`, ...members };
  return new ElasticsearchError(400, cause, root);
}

/** An error that every shard finds while it searches, as Elasticsearch reports it. */
export function searchPhaseFailure(root: ErrorCause): ElasticsearchError {
  const reason = 'all shards failed';
  const failed = [{ shard: 0, reason: root }];
  return new ElasticsearchError(
    400,
    { type: 'search_phase_execution_exception', reason, phase: 'query', grouped: true, failed_shards: failed },
    root,
  );
}

/** An error that a shard finds while it makes the query. */
export function queryFailure(index: string, why: string): ElasticsearchError {
  const reason = `failed to create query: ${why}`;
  return searchPhaseFailure({ type: 'query_shard_exception', reason, index_uuid: '_na_', index });
}

export function indexNotFound(name: string): ElasticsearchError {
  const index = name.slice(0, 100);
  return new ElasticsearchError(404, {
    type: 'index_not_found_exception',
    reason: `no such index [${index}]`,
    'resource.type': 'index_or_alias',
    'resource.id': index,
    index_uuid: '_na_',
    index,
  });
}

/** Elasticsearch's names of Trawl's errors. */
const TYPES: Readonly<Partial<Record<TrawlError['code'], string>>> = {
  UNAUTHORIZED: 'security_exception',
  FORBIDDEN: 'security_exception',
  OVERLOADED: 'es_rejected_execution_exception',
  PERTURBED: 'es_rejected_execution_exception',
  NOT_READY: 'cluster_block_exception',
  FILE_CHANGED: 'no_shard_available_action_exception',
  BODY_TOO_LARGE: 'content_too_long_exception',
  DEADLINE_EXCEEDED: 'timeout_exception',
  CANCELLED: 'task_cancelled_exception',
  NOT_FOUND: 'resource_not_found_exception',
};

/** The JSON object of any error, as a reply or as a part of one. */
export function errorObject(error: TrawlError, status: number): { error: object | string; status: number } {
  // Elasticsearch reports this error without a type.
  if (error.code === 'UNSUPPORTED_MEDIA_TYPE') return { error: error.message, status };
  if (error instanceof ElasticsearchError) {
    return { error: { root_cause: [error.root], ...error.failure }, status: error.status };
  }
  const type = TYPES[error.code] ?? (status === 500 ? 'exception' : 'illegal_argument_exception');
  const reason = status === 500 ? 'The server failed. Its log has the details under the request id.' : error.message;
  return errorObject(new ElasticsearchError(status, { type, reason }), status);
}

/** The format and statuses of errors on the routes of Elasticsearch. */
export const ELASTICSEARCH_ERRORS: ErrorFormat = {
  name: 'elasticsearch',
  statuses: {
    INVALID_JSON: 400,
    INVALID_REQUEST: 400,
    K_TOO_LARGE: 400,
    DIMENSION_MISMATCH: 400,
    NON_FINITE_QUERY: 400,
    SCORE_OVERFLOW: 400,
    ENCODING_FAILED: 400,
    NOT_SUPPORTED: 400,
    QUERY_TOO_LONG: 400,
    TOO_MANY_QUERIES: 400,
    UNSUPPORTED_MEDIA_TYPE: 406,
    // Its clients retry a 429.
    OVERLOADED: 429,
  },
  statusOf: (error) => (error instanceof ElasticsearchError ? error.status : undefined),
  errorBody: (error, status) => JSON.stringify(errorObject(error, status)),
};

/** Whether a request to a route that the server does not have comes from a client of Elasticsearch, by its path or its media types. */
export function seemsElasticsearch({ url, headers }: FastifyRequest): boolean {
  return /^[^?]*\/_/.test(url) || /vnd\.elasticsearch\+/.test(`${headers.accept} ${headers['content-type']}`);
}

/** A 400 as in Elasticsearch: clients take a 404 for an index or a document that does not exist. */
export function noHandler({ url, method }: FastifyRequest): ElasticsearchError {
  const path = url.split('?')[0]!.slice(0, 200);
  return illegalArgument(
    `no handler found for uri [${path}] and method [${method}]: this server does not have it; docs/elasticsearch.md lists what it has`,
  );
}

export function isElasticsearch(request: FastifyRequest): boolean {
  return request.dialect === ELASTICSEARCH_ERRORS;
}
