import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asTrawlError, isNodeError, TrawlError } from '../../base/errors.ts';
import { elapsedMs, totalOnly } from '../metrics/server-timing.ts';
import type { ServerConfig } from '../server-config.ts';
import { clientError, ERROR_STATUS, isForOperator } from './error-status.ts';
import { RequestError, type ValidationIssue } from './request-error.ts';

/**
 * The body of an error: `detail` in FastAPI's format, for clients of the original servers, and `error` with the stable code. The
 * details of a 500 are only logged.
 */
function errorBody(error: TrawlError, status: number = ERROR_STATUS[error.code]): string {
  const message = status === 500 ? 'The server failed. Its log has the details under the request id.' : error.message;
  return JSON.stringify({ detail: detailOf(error, status), error: { code: error.code, message } });
}

/** The faults of a 422, also of one that an index refused, because clients of FastAPI expect a list there; else a phrase. */
function detailOf(error: TrawlError, status: number): readonly ValidationIssue[] | string {
  if (error instanceof RequestError) return error.issues;
  if (status === 422) return [{ type: 'value_error', loc: ['body'], msg: error.message }];
  return STATUS_CODES[status] ?? 'Error';
}

/** Sends every error: one table of statuses, one format, one log line. */
export function installErrorHandler(app: FastifyInstance, config: ServerConfig): void {
  app.setErrorHandler((thrown: unknown, request, reply) => {
    sendError(fromFastify(thrown, config), request, reply, config);
  });
}

/** Upper limit of `retry-after`, because the expected wait is only an estimate. */
const MAX_RETRY_AFTER_S = 60;

export function sendError(
  error: TrawlError,
  request: FastifyRequest,
  reply: FastifyReply,
  config: Pick<ServerConfig, 'retryAfterS' | 'metrics'>,
): void {
  const dialect = request.dialect ?? null;
  const status = dialect?.statusOf?.(error) ?? dialect?.statuses[error.code] ?? ERROR_STATUS[error.code];
  logError(error, status, request, reply);
  config.metrics?.refused(error.code);
  const shown = clientError(error);
  if (status === 503) {
    // The error's own time counts if it is larger.
    const ofError = Math.min(MAX_RETRY_AFTER_S, error.details.retryAfterS ?? 0);
    reply.header('retry-after', Math.max(config.retryAfterS, ofError));
  }
  void reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .header('server-timing', totalOnly(elapsedMs(request)))
    .send(dialect?.errorBody?.(shown, status) ?? errorBody(shown, status));
}

/** Logs the route's pattern instead of the path, which may contain a client's text. */
function logError(error: TrawlError, status: number, request: FastifyRequest, reply: FastifyReply): void {
  const { url: route } = request.routeOptions;
  const where = { method: request.method, route, dialect: request.dialect?.name };
  if (reply.raw.destroyed || request.raw.socket.destroyed) {
    request.log.info({ ...where, code: error.code }, 'client disconnected before the response');
  } else if (status === 500 || isForOperator(error.code) || error.code === 'RELOAD_FAILED') {
    request.log.error({ ...where, err: error, code: error.code, details: error.details }, 'request failed');
  } else {
    request.log.info({ ...where, code: error.code, status, reason: error.message }, 'request refused');
  }
}

/** Converts errors that Fastify raises before a handler runs. */
function fromFastify(thrown: unknown, config: ServerConfig): TrawlError {
  if (thrown instanceof TrawlError || !isNodeError(thrown)) return asTrawlError(thrown);
  switch (thrown.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge(config);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new TrawlError(
        'UNSUPPORTED_MEDIA_TYPE',
        'The content-type header is not a media type. Expected application/json.',
      );
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new TrawlError('INVALID_REQUEST', 'The length of the body differs from its content-length header.');
    case 'ECONNRESET':
      return new TrawlError('CANCELLED', 'The client disconnected while sending its request.', { cause: thrown });
    case 'Z_DATA_ERROR':
    case 'Z_BUF_ERROR':
      return new TrawlError(
        'INVALID_REQUEST',
        `The body cannot be decompressed as its content-encoding says (${thrown.message}). Send it as gzip, or plain without that header.`,
      );
    default:
      return asTrawlError(thrown);
  }
}

export function bodyTooLarge(config: Pick<ServerConfig, 'maxBodyBytes'>): TrawlError {
  return new TrawlError(
    'BODY_TOO_LARGE',
    `The body is larger than ${config.maxBodyBytes} bytes, the limit of this server. Send fewer queries per request.`,
  );
}
