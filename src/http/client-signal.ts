import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Deadline } from './deadline.ts';

/**
 * A signal that aborts when the client goes away before its answer is sent, or when its deadline has passed: then with
 * the error as its reason.
 *
 * The request's own `close` will not do: Node emits it as soon as the body has been read.
 */
export function clientSignal(request: IncomingMessage, response: ServerResponse, deadline?: Deadline): AbortSignal {
  const controller = new AbortController();
  const timer =
    deadline === undefined
      ? undefined
      : setTimeout(() => controller.abort(deadline.error), Math.max(0, deadline.at - performance.now()));
  whenAnswerIsOver(request, response, () => {
    clearTimeout(timer);
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

/**
 * Calls back once, when the answer has left or the client has.
 *
 * The response's `close` comes after every answer, sent or not. A response that waits behind another one on the same
 * connection has no socket yet and hears nothing, hence the socket's `close` as well.
 */
export function whenAnswerIsOver(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  const { socket } = request;
  const over = (): void => {
    waiting.delete(over);
    response.off('close', over);
    callback();
  };
  if (socket.destroyed || response.closed) {
    callback();
    return;
  }
  const waiting = waitingFor(socket);
  waiting.add(over);
  response.once('close', over);
}

/** One listener per connection, however many requests a client sends ahead of their answers. */
const waitingBySocket = new WeakMap<Socket, Set<() => void>>();

function waitingFor(socket: Socket): Set<() => void> {
  const known = waitingBySocket.get(socket);
  if (known !== undefined) return known;
  const waiting = new Set<() => void>();
  waitingBySocket.set(socket, waiting);
  socket.once('close', () => {
    for (const over of [...waiting]) over();
  });
  return waiting;
}
