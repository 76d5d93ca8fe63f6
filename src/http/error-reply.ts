import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asTrawlError, isNodeError, TrawlError } from '../errors.ts';
import { ERROR_STATUS } from './error-status.ts';
import { RequestError } from './request-error.ts';
import type { ServerConfig } from './server-config.ts';
import { elapsedMs, totalOnly } from './server-timing.ts';

/**
 * The body of an error: FastAPI's `detail` for the clients of the original servers, and `error` with the stable code for
 * everyone else. What went wrong inside the server is for its log, not for the client.
 */
export function errorBody(error: TrawlError, status: number = ERROR_STATUS[error.code]): string {
  const message =
    status === 500 ? 'The server failed on this request. Its log has the details under the request id.' : error.message;
  const detail = error instanceof RequestError ? error.issues : (STATUS_CODES[status] ?? 'Error');
  return JSON.stringify({ detail, error: { code: error.code, message } });
}

/** Every error leaves through here: one table of statuses, one form of body, one log line. */
export function installErrorHandler(app: FastifyInstance, config: ServerConfig): void {
  app.setErrorHandler((thrown: unknown, request, reply) => {
    sendError(fromFastify(thrown, config), request, reply, config);
  });
}

/** The wait is an estimate, and may be over sooner. */
const MOST_RETRY_AFTER_S = 60;

export function sendError(
  error: TrawlError,
  request: FastifyRequest,
  reply: FastifyReply,
  config: Pick<ServerConfig, 'retryAfterS' | 'metrics'>,
): void {
  const dialect = request.dialect ?? null;
  const status = dialect?.statuses[error.code] ?? ERROR_STATUS[error.code];
  logError(error, status, request, reply);
  config.metrics?.refused(error.code);
  if (status === 503) reply.header('retry-after', retryAfterS(error, config));
  void reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('server-timing', totalOnly(elapsedMs(request)))
    .send(dialect?.errorBody?.(error, status) ?? errorBody(error, status));
}

/** Seconds until it may be tried again: the error's own figure where it is more than what is usual, up to a minute. */
function retryAfterS({ details }: TrawlError, { retryAfterS: usual }: Pick<ServerConfig, 'retryAfterS'>): number {
  const own = details.retryAfterS;
  return Math.max(usual, Math.min(MOST_RETRY_AFTER_S, typeof own === 'number' ? own : 0));
}

/** The route as it is declared: what a path or a query string says is the client's. */
function logError(error: TrawlError, status: number, request: FastifyRequest, reply: FastifyReply): void {
  const { url: route } = request.routeOptions;
  const which = {
    method: request.method,
    ...(route === undefined ? {} : { route }),
    ...(request.dialect == null ? {} : { dialect: request.dialect.name }),
  };
  if (reply.raw.destroyed || request.raw.socket.destroyed) {
    request.log.info({ ...which, code: error.code }, 'the client hung up before its answer');
  } else if (status === 500 || error.code === 'RELOAD_FAILED') {
    request.log.error({ ...which, err: error, code: error.code, details: error.details }, 'request failed');
  } else {
    request.log.info({ ...which, code: error.code, status, reason: error.message }, 'request refused');
  }
}

/** Fastify's own errors, which it raises before a handler runs, in the project's codes. */
function fromFastify(thrown: unknown, config: ServerConfig): TrawlError {
  if (thrown instanceof TrawlError || !isNodeError(thrown)) return asTrawlError(thrown);
  switch (thrown.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge(config);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new TrawlError('UNSUPPORTED_MEDIA_TYPE', 'The content-type header is not a media type.');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new TrawlError('INVALID_REQUEST', 'The body has another length than its content-length header says.');
    case 'ECONNRESET':
      return new TrawlError('CANCELLED', 'The client hung up while sending its request.', { cause: thrown });
    default:
      return asTrawlError(thrown);
  }
}

export function bodyTooLarge(config: Pick<ServerConfig, 'maxBodyBytes'>): TrawlError {
  return new TrawlError(
    'BODY_TOO_LARGE',
    `The body is larger than the ${config.maxBodyBytes} bytes this server takes. Send fewer queries at a time.`,
  );
}
