import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** Looks at a connection within the time after which it is cut. */
const LOOKS = 4;

/**
 * Cuts the connection of a client that takes no byte of its answer for `stallMs`, or a quarter more. A slow reader is none,
 * however slow. Nor is the time of waiting for an answer: the watch begins when the answer is given to the socket, for
 * requests sent ahead when their turn comes. It is not the socket's own timer, because every byte that arrives restarts
 * that one: a client could hold its answers for ever by sending one now and then.
 */
export function cutIfStalled(
  { socket }: IncomingMessage,
  response: ServerResponse,
  stallMs: number,
  onCut: () => void,
): void {
  // A request that never was on a network (Fastify's inject) has another kind of socket.
  if (!(socket instanceof Socket) || socket.destroyed || response.closed) return;
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    let before = unsentOf(socket);
    let since = performance.now();
    timer = setInterval(() => {
      const now = unsentOf(socket);
      if (now === before && socket.writableLength > 0) {
        if (performance.now() - since < stallMs) return;
        onCut();
        socket.destroy();
      }
      before = now;
      since = performance.now();
    }, stallMs / LOOKS).unref();
  };
  if (response.socket === null) response.once('socket', begin);
  else begin();
  response.once('close', () => {
    response.off('socket', begin);
    clearInterval(timer);
  });
}

/** What changes whenever the client takes a byte. Of a piece that is half taken only the handle knows, as Node's own timer does. */
function unsentOf(socket: Socket): string {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return `${socket.bytesWritten} ${socket.writableLength} ${handle?.writeQueueSize}`;
}
