import type { FastifyRequest } from 'fastify';
import { TrawlError } from '../errors.ts';
import { RequestError } from './request-error.ts';
import type { ServerConfig } from './server-config.ts';

/** Milliseconds that the client gives the request, from its arrival. */
const HEADER = 'x-request-timeout-ms';

export interface Deadline {
  /** On the clock of `performance.now()`. */
  readonly at: number;
  readonly error: TrawlError;
}

/**
 * When a request is given up: after the time that it names, else after the listener's; undefined where it waits until its
 * client hangs up.
 *
 * @throws RequestError INVALID_REQUEST for a time that is none.
 */
export function deadlineOf(request: FastifyRequest, config: Pick<ServerConfig, 'deadlineMs'>): Deadline | undefined {
  const named = request.headers[HEADER];
  const ms = named === undefined ? config.deadlineMs : Number(milliseconds(named));
  if (ms === 0) return undefined;
  const whose = named === undefined ? 'this server gives a request' : `its ${HEADER} gave it`;
  return {
    at: request.arrivedAt + ms,
    error: new TrawlError('DEADLINE_EXCEEDED', `The request was not answered within the ${ms} ms that ${whose}.`),
  };
}

function milliseconds(value: string | string[]): string {
  if (typeof value === 'string' && /^[1-9]\d{0,8}$/.test(value)) return value;
  const reason = 'it has to be a whole number of milliseconds from 1 to 999999999';
  throw new RequestError('INVALID_REQUEST', `The header ${HEADER} is not understood: ${reason}.`, [
    { type: 'int_parsing', loc: ['header', HEADER], msg: `Input is not valid: ${reason}` },
  ]);
}

/** The error of a deadline that has passed, in place of the cancellation it caused. */
export function asDeadline(error: unknown, { reason }: AbortSignal): unknown {
  return reason instanceof TrawlError ? reason : error;
}
