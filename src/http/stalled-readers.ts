import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** The answer that a connection is sending under watch. */
const sending = new WeakMap<Socket, ServerResponse>();

/**
 * Cuts the connection of a client that takes no byte of its answer for `stallMs`. Node restarts a socket's timer while a
 * write makes progress, however slowly, so a slow reader is none. The time of waiting for an answer does not count: the
 * watch begins when the answer is given to the socket, for requests sent ahead when their turn comes.
 */
export function cutIfStalled(
  { socket }: IncomingMessage,
  response: ServerResponse,
  stallMs: number,
  onCut: () => void,
): void {
  // A request that never was on a network (Fastify's inject) has another kind of socket.
  if (!(socket instanceof Socket)) return;
  const begin = (): void => {
    sending.set(socket, response);
    socket.setTimeout(stallMs);
    socket.once('timeout', onCut);
  };
  if (response.socket === null) response.once('socket', begin);
  else begin();
  response.once('close', () => {
    response.off('socket', begin);
    socket.off('timeout', onCut);
    if (sending.get(socket) !== response) return;
    sending.delete(socket);
    // Node has set the time of an idle connection by now, unless a further request is under way on it.
    if (socket.timeout === stallMs) socket.setTimeout(0);
  });
}
