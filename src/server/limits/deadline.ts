import type { FastifyRequest } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { RequestError } from '../errors/request-error.ts';
import type { ServerConfig } from '../server-config.ts';

/** A client's time limit for its request, in milliseconds from its arrival. */
const HEADER = 'x-request-timeout-ms';

export interface Deadline {
  /** By `performance.now()`. */
  readonly at: number;
  readonly error: TrawlError;
}

/**
 * The deadline of a request: that of its header, else that of the listener; undefined if neither sets one.
 *
 * @throws RequestError INVALID_REQUEST for a header that is not a number of milliseconds.
 */
export function deadlineOf(request: FastifyRequest, config: Pick<ServerConfig, 'deadlineMs'>): Deadline | undefined {
  const header = request.headers[HEADER];
  const ms = header === undefined ? config.deadlineMs : Number(milliseconds(header));
  if (ms === 0) return undefined;
  const whose = header === undefined ? "the server's --deadline-ms" : `its ${HEADER}`;
  return {
    at: request.arrivedAt + ms,
    error: new TrawlError('DEADLINE_EXCEEDED', `The request was not answered within ${ms} ms (${whose}).`),
  };
}

function milliseconds(value: string | string[]): string {
  if (typeof value === 'string' && /^[1-9]\d{0,8}$/.test(value)) return value;
  const reason = 'expected a whole number of milliseconds from 1 to 999999999';
  throw new RequestError('INVALID_REQUEST', `The header ${HEADER} is not valid: ${reason}.`, [
    { type: 'int_parsing', loc: ['header', HEADER], msg: `Input is not valid: ${reason}` },
  ]);
}

/**
 * The error to answer a failed request with: once the deadline has passed, that of the deadline, whatever failed (usually the
 * deadline has cancelled a call); before that, the request's own error.
 */
export function deadlineErrorOr(error: unknown, { reason }: AbortSignal): unknown {
  return reason instanceof TrawlError ? reason : error;
}
