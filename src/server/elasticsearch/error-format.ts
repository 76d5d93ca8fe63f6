import type { FastifyRequest } from 'fastify';
import type { TrawlError } from '../../base/errors.ts';
import type { ErrorFormat } from '../dialects/dialect.ts';
import { ElasticsearchError, errorObject } from './elasticsearch-error.ts';

/** Elasticsearch's names of errors that are not its own. */
const TYPES: Readonly<Partial<Record<TrawlError['code'], string>>> = {
  UNAUTHORIZED: 'security_exception',
  FORBIDDEN: 'security_exception',
  OVERLOADED: 'es_rejected_execution_exception',
  PERTURBED: 'es_rejected_execution_exception',
  NOT_READY: 'cluster_block_exception',
  BODY_TOO_LARGE: 'content_too_long_exception',
  DEADLINE_EXCEEDED: 'timeout_exception',
  CANCELLED: 'task_cancelled_exception',
  NOT_FOUND: 'resource_not_found_exception',
};

/** Errors of the routes of Elasticsearch, in its format and with its statuses. */
export const ELASTICSEARCH_ERRORS: ErrorFormat = {
  name: 'elasticsearch',
  statuses: {
    INVALID_JSON: 400,
    INVALID_REQUEST: 400,
    K_TOO_LARGE: 400,
    NOT_SUPPORTED: 400,
    QUERY_TOO_LONG: 400,
    TOO_MANY_QUERIES: 400,
    UNSUPPORTED_MEDIA_TYPE: 406,
    // Its clients retry a 429.
    OVERLOADED: 429,
  },
  statusOf: (error) => (error instanceof ElasticsearchError ? error.status : undefined),
  errorBody: (error, status) => JSON.stringify(elasticsearchError(error, status)),
};

/** The JSON object of any error. */
export function elasticsearchError(error: TrawlError, status: number): { error: object | string; status: number } {
  // A body of this one form has no type.
  if (error.code === 'UNSUPPORTED_MEDIA_TYPE') return { error: error.message, status };
  if (error instanceof ElasticsearchError) return errorObject(error);
  const type = TYPES[error.code] ?? (status === 500 ? 'exception' : 'illegal_argument_exception');
  const reason = status === 500 ? 'The server failed. Its log has the details under the request id.' : error.message;
  return errorObject(new ElasticsearchError(status, { type, reason }));
}

export function isElasticsearch(request: FastifyRequest): boolean {
  return request.dialect === ELASTICSEARCH_ERRORS;
}
