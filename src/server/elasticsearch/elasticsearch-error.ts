import { TrawlError } from '../../base/errors.ts';

/** The place of a fault in a body, from 1. */
export interface Location {
  readonly line: number;
  readonly col: number;
}

/** Members of an error beside `type` and `reason`, such as `line` or `index`. */
type More = Readonly<Record<string, unknown>>;

/** An error as Elasticsearch writes it. */
export interface ErrorCause extends More {
  readonly type: string;
  readonly reason: string;
}

/** An error of a request in Elasticsearch's format, with its status. */
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

/** The JSON object of an error, within a body of its own or within the part of another reply. */
export function errorObject(error: ElasticsearchError): { error: object; status: number } {
  return { error: { root_cause: [error.root], ...error.failure }, status: error.status };
}

export function illegalArgument(reason: string): ElasticsearchError {
  return new ElasticsearchError(400, { type: 'illegal_argument_exception', reason });
}

export function parsingException(reason: string, location: Location, more: More = {}): ElasticsearchError {
  const root = { type: 'parsing_exception', reason, ...location };
  return new ElasticsearchError(400, { ...root, ...more }, root);
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

export function indexNotFound(index: string): ElasticsearchError {
  const shown = index.slice(0, 100);
  return new ElasticsearchError(404, {
    type: 'index_not_found_exception',
    reason: `no such index [${shown}]`,
    'resource.type': 'index_or_alias',
    'resource.id': shown,
    index_uuid: '_na_',
    index: shown,
  });
}
