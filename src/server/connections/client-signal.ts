import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { RequestError } from '../errors/request-error.ts';
import type { ServerConfig } from '../server-config.ts';

/** Status in metrics and traces of a client that disconnected before its response was sent, as in nginx. */
export const CLIENT_CLOSED_REQUEST = 499;

/**
 * A signal that aborts when the client disconnects before its response is sent, or at the deadline, with the deadline's
 * error as the reason.
 *
 * The request's own `close` event cannot be used: Node emits it as soon as the body has been read.
 */
export function clientSignal(request: IncomingMessage, response: ServerResponse, deadline?: Deadline): AbortSignal {
  const controller = new AbortController();
  const timer =
    deadline === undefined
      ? undefined
      : setTimeout(() => controller.abort(deadline.error), Math.max(0, deadline.at - performance.now()));
  onResponseEnd(request, response, () => {
    clearTimeout(timer);
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

/**
 * Calls `callback` once, when the response has been sent or the client has disconnected.
 *
 * A response emits `close` in both cases, unless it waits behind another response on the same connection and has no socket yet.
 * For that case there is a listener on the socket's `close`.
 */
export function onResponseEnd(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  const { socket } = request;
  if (socket.destroyed || response.closed) {
    callback();
    return;
  }
  const registered = callbacksByResponse.get(response);
  if (registered !== undefined) {
    registered.push(callback);
    return;
  }
  const callbacks = [callback];
  const end = (): void => {
    unfinished.delete(end);
    response.off('close', end);
    callbacksByResponse.delete(response);
    for (const each of callbacks) each();
  };
  callbacksByResponse.set(response, callbacks);
  const unfinished = unfinishedOn(socket);
  unfinished.add(end);
  response.once('close', end);
}

/** A response has one listener, which calls all of these. */
const callbacksByResponse = new WeakMap<ServerResponse, (() => void)[]>();

/** A connection has one listener, which calls these for its pipelined requests. */
const unfinishedBySocket = new WeakMap<Socket, Set<() => void>>();

function unfinishedOn(socket: Socket): Set<() => void> {
  const registered = unfinishedBySocket.get(socket);
  if (registered !== undefined) return registered;
  const unfinished = new Set<() => void>();
  unfinishedBySocket.set(socket, unfinished);
  socket.once('close', () => {
    for (const end of [...unfinished]) end();
  });
  return unfinished;
}

/** A client's time limit for its request, in milliseconds from its arrival. */
const HEADER = 'x-request-timeout-ms';

export interface Deadline {
  /** By `performance.now()`. */
  readonly at: number;
  readonly error: TrawlError;
}

/**
 * The deadline of a request: its header's, else the listener's; undefined if neither sets one.
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

/** DEADLINE_EXCEEDED once the deadline has passed (it has usually cancelled a call), else the original error. */
export function deadlineErrorOr(error: unknown, { reason }: AbortSignal): unknown {
  return reason instanceof TrawlError ? reason : error;
}
